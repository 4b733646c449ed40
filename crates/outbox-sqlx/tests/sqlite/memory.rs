//! Databases in memory: which of them are one, and which cannot be claimed from.

use outbox_sqlx::OutboxTable;
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use outbox_suite::chain;
use outbox_suite::sqlite::{claim, errors, tenant, try_claim};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

fn memory(options: SqliteConnectOptions, connections: u32) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .min_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(options)
}

async fn with_table(pool: &SqlitePool) -> SqliteStore {
    let ddl = SqliteTable::new(OutboxTable::default()).expect("a table").ddl();
    sqlx::raw_sql(AssertSqlSafe(ddl)).execute(pool).await.expect("the table is made");
    SqliteStore::new(pool.clone(), OutboxTable::default()).expect("a table")
}

#[tokio::test]
async fn a_private_database_in_memory_needs_a_pool_of_one() {
    let acme = tenant("acme");
    let private = || SqliteConnectOptions::new().filename(":memory:");
    let many = SqliteStore::new(memory(private(), 2), OutboxTable::default()).expect("a table");
    let error = try_claim(&many, &acme).await.expect_err("each connection has its own");
    assert!(chain(&error).contains("max_connections(1)"), "{}", chain(&error));
    assert!(errors(&many.check().await.expect("a check")).contains("max_connections(1)"));

    let pool = memory(private(), 1);
    let store = with_table(&pool).await;
    let again = SqliteStore::new(pool.clone(), OutboxTable::default()).expect("a table");
    let elsewhere = with_table(&memory(private(), 1)).await;
    let held = claim(&store, &acme).await;
    assert!(try_claim(&again, &acme).await.expect("a claim").is_none(), "the same database");
    claim(&elsewhere, &acme).await;
    drop(held);
    claim(&again, &acme).await;
    assert_eq!(again.check().await.expect("a check"), []);
    let short_lived = SqlitePoolOptions::new().max_connections(1).connect_lazy_with(private());
    let store = with_table(&short_lived).await;
    assert!(errors(&store.check().await.expect("a check")).contains("closes that after a while"));
}

#[tokio::test]
async fn a_shared_database_in_memory_is_one_by_its_name() {
    let acme = tenant("acme");
    let named = |name: &str| SqliteConnectOptions::new().filename(name).in_memory(true).shared_cache(true);
    let shared = |name: &str| named(&format!("file:{name}"));
    let memdb = |name: &str| SqliteConnectOptions::new().filename(name).vfs("memdb");
    let uri = "file:bad-input-3?mode=memory&cache=shared";
    let pairs = [
        (shared("bad-input-1"), shared("bad-input-2")),
        (memdb("/bad-input-1"), memdb("/bad-input-2")),
        (SqliteConnectOptions::new().filename(uri), shared("bad-input-4")),
    ];
    for (options, other) in pairs {
        let (pool, beside) = (memory(options.clone(), 2), memory(options, 2));
        let (store, other) = (with_table(&pool).await, with_table(&memory(other, 2)).await);
        let beside = SqliteStore::new(beside, OutboxTable::default()).expect("a table");
        let held = claim(&store, &acme).await;
        assert!(try_claim(&beside, &acme).await.expect("a claim").is_none(), "the same database");
        claim(&other, &acme).await;
        drop(held);
        claim(&beside, &acme).await;
    }
    // SQLite gives each connection its own if the name is no URI, whatever the cache.
    let store = SqliteStore::new(memory(named("bad-input-5"), 2), OutboxTable::default()).expect("a table");
    let error = try_claim(&store, &acme).await.expect_err("each connection has its own");
    assert!(chain(&error).contains("max_connections(1)"), "{}", chain(&error));
}
