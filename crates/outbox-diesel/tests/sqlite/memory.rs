//! Databases in memory: which of them are one, and which cannot be claimed from.

use std::num::NonZeroU32;

use outbox_core::Store as _;
use outbox_diesel::OutboxTable;
use outbox_diesel::sqlite::{SqliteConnections, SqliteConnector, SqliteStore, SqliteTable};
use outbox_suite::chain;
use outbox_suite::sqlite::{Open, claim, errors, request, tenant, try_claim};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use crate::driver::driver;

fn ddl() -> String {
    SqliteTable::new(OutboxTable::default()).expect("a table").ddl()
}

fn store(connections: impl Into<SqliteConnections>) -> SqliteStore {
    SqliteStore::new(connections, OutboxTable::default()).expect("a table")
}

#[tokio::test]
async fn a_private_database_in_memory_needs_a_single_connection() {
    let acme = tenant("acme");
    let many = store(SqliteConnector::new(":memory:"));
    let error = try_claim(&many, &acme).await.expect_err("each connection has its own");
    assert!(chain(&error).contains("max_connections(1)"), "{}", chain(&error));
    assert!(errors(&many.check().await.expect("a check")).contains("max_connections(1)"));

    let private = || {
        SqliteConnector::new(":memory:")
            .with_max_connections(NonZeroU32::MIN)
            .with_setup(|connection| diesel::connection::SimpleConnection::batch_execute(connection, &ddl()))
    };
    let connections = SqliteConnections::from(private());
    let (one, again, elsewhere) = (store(connections.clone()), store(connections), store(private()));
    let held = claim(&one, &acme).await;
    assert!(try_claim(&again, &acme).await.expect("a claim").is_none(), "the same database");
    claim(&elsewhere, &acme).await;
    drop(held);
    claim(&again, &acme).await;
    assert_eq!(again.check().await.expect("a check"), []);
}

#[tokio::test]
async fn a_shared_database_in_memory_is_one_by_its_name() {
    let acme = tenant("acme");
    let pairs = [
        ("file:diesel-1?mode=memory&cache=shared", "file:diesel-2?mode=memory&cache=shared"),
        ("file:/diesel-3?vfs=memdb", "file:/diesel-4?vfs=memdb"),
    ];
    for (name, other) in pairs {
        let (mut here, mut there) =
            (driver().connect(&Open::named(name)).await, driver().connect(&Open::named(other)).await);
        here.execute(&ddl()).await;
        there.execute(&ddl()).await;
        let shared = |name| driver().store(&Open::named(name), OutboxTable::default());
        let (store, beside, other) = (shared(name), shared(name), shared(other));
        let held = claim(&store, &acme).await;
        assert!(try_claim(&beside, &acme).await.expect("a claim").is_none(), "the same database");
        claim(&other, &acme).await;
        drop(held);
        claim(&beside, &acme).await;
    }
}

/// One process, one database in memory, two ORMs: they hold tenants in one table.
#[tokio::test]
async fn a_relay_on_sqlx_and_one_on_diesel_share_a_database_in_memory() {
    let acme = tenant("acme");
    let pairs = [
        (
            SqliteConnectOptions::new().filename("file:both%201").in_memory(true).shared_cache(true),
            "file:both 1?mode=memory&cache=shared",
        ),
        (SqliteConnectOptions::new().filename("/both 2").vfs("memdb"), "file:/both%202?vfs=memdb"),
    ];
    for (options, name) in pairs {
        let pool = SqlitePoolOptions::new().connect_lazy_with(options);
        let table = outbox_sqlx::sqlite::SqliteTable::new(OutboxTable::default()).expect("a table");
        let mut connection = pool.acquire().await.expect("a connection");
        table.create(&mut connection).await.expect("made by sqlx");
        let sqlx = outbox_sqlx::sqlite::SqliteStore::new(pool, OutboxTable::default()).expect("a table");
        let diesel = store(SqliteConnector::new(name));
        assert_eq!(errors(&diesel.check().await.expect("a check")), "", "one database: {name}");
        let held = claim(&diesel, &acme).await;
        let answer = sqlx.claim(&request(&acme, 1)).await.expect("a claim");
        assert!(matches!(answer, outbox_core::ClaimOutcome::Held), "{name}: {answer:?}");
        drop(held);
        let held = sqlx.claim(&request(&acme, 1)).await.expect("a claim");
        assert!(matches!(held, outbox_core::ClaimOutcome::Claimed(_)), "{name}");
        assert!(try_claim(&diesel, &acme).await.expect("a claim").is_none(), "{name}");
    }
}
