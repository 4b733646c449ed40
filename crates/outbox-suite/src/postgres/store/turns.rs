//! The lock key, and who takes turns by it: colliding tenants, other tables, the TypeScript relay.

use outbox_core::{MessageId, Settlement};
use outbox_sql::OutboxTable;
use sqlx::{Connection, PgConnection};

use crate::postgres::{Database, Driver};
use crate::server::{claim, ids, is_held, message};

/// The halves of the key that a claim really holds, as PostgreSQL lists them.
const HELD: &str = "SELECT classid::bigint || ' ' || objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND mode = 'ExclusiveLock'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The key of a tenant is the same for ever: these values must never change.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_lock_keys_are_the_golden_ones(driver: Driver) {
    let database = Database::create(driver).await;
    for (table, tenant, golden) in [
        (OutboxTable::default(), "acme", GOLDEN[0]),
        (OutboxTable::default(), "Å b\"'", GOLDEN[1]),
        (OutboxTable::prisma("OutboxMessage"), "acme", GOLDEN[2]),
    ] {
        database.make(&table).await;
        let store = database.store(&table);
        let claimed = claim(&store, tenant).await;
        assert_eq!(database.text(HELD).await, golden, "{tenant}");
        claimed.claim.settle(Settlement::release()).await.unwrap();
        store.close().await;
        database.run(format!("DROP TABLE {}", table.quoted(outbox_sql::Dialect::Postgres))).await;
    }
    database.drop().await;
}

const GOLDEN: [&str; 3] = ["4263535930 2444279918", "4263535930 1697818880", "3581659251 2444279918"];

/// A tenant is written into the text of the claim, and is the same tenant whatever is in its name and however the
/// server reads backslashes: it excludes whoever binds it, and nothing of it is run.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_tenant_with_any_name_holds_its_own_key(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    for setting in ["on", "off"] {
        let set = format!("ALTER DATABASE {} SET standard_conforming_strings = {setting}", database.name);
        database.run(set).await;
        let store = database.store(table.description());
        for tenant in [
            "'",
            "\\",
            "\\'",
            "'; DROP TABLE outbox_message; --",
            "\\'; DROP TABLE outbox_message; --",
            "\\x41",
            "$1",
            "{0}",
            "\u{1f980}\\",
            "a\nb",
        ] {
            let written = database.append(&table, &[message(tenant, "1")]).await;
            let claimed = claim(&store, tenant).await;
            assert_eq!(ids(&claimed), written, "{tenant}");
            let bound = "SELECT pg_try_advisory_xact_lock(hashtext('public.outbox_message'), hashtext($1))";
            let free: bool = sqlx::query_scalar(bound).bind(tenant).fetch_one(&database.admin).await.unwrap();
            assert!(!free, "{tenant} is held by another key");
            let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
            assert_eq!(database.number(held).await, 1, "{tenant}");
            claimed
                .claim
                .settle(Settlement::published(written.into_iter().map(MessageId::new)))
                .await
                .unwrap();
        }
        store.close().await;
    }
    database.drop().await;
}

/// Two tenants whose hashes are equal take turns: the second is held while the first is, and then served.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn tenants_with_one_key_take_turns(driver: Driver) {
    let (one, other) = COLLIDING;
    let database = Database::create(driver).await;
    let collide = format!("SELECT (hashtext('{one}') = hashtext('{other}'))::int::bigint");
    assert_eq!(database.number(collide).await, 1);
    let table = database.make(&OutboxTable::default()).await;
    let written = database.append(&table, &[message(one, "1"), message(other, "2")]).await;
    let (first, second) = (database.store(table.description()), database.store(table.description()));
    let claimed = claim(&first, one).await;
    assert!(is_held(&second, other).await);
    claimed.claim.settle(Settlement::published([MessageId::new(written[0])])).await.unwrap();
    assert_eq!(ids(&claim(&second, other).await), [written[1]]);
    database.drop().await;
}

const COLLIDING: (&str, &str) = ("tenant-142962", "tenant-228633");

/// The statements of the TypeScript relay, by hand on the Prisma table, and a claim of ours exclude each other,
/// and each goes on where the other stopped.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_typescript_relay_and_ours_take_turns(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::prisma("OutboxMessage")).await;
    let written =
        database.append(&table, &[message("acme", "1"), message("acme", "2"), message("acme", "3")]).await;
    let store = database.store(table.description());
    let mut theirs = PgConnection::connect_with(&database.options).await.unwrap();

    // Ours holds it: theirs is told so.
    let claimed = claim(&store, "acme").await;
    assert_eq!(their_claim(&mut theirs).await, None);
    claimed.claim.settle(Settlement::published([MessageId::new(written[0])])).await.unwrap();

    // Theirs holds it, goes on after ours, and marks one: ours is told so, and goes on after theirs.
    assert_eq!(their_claim(&mut theirs).await, Some(written[1..].to_vec()));
    assert!(is_held(&store, "acme").await);
    let mark = "UPDATE public.\"outboxMessage\" SET \"publishedAt\" = now() WHERE id = ANY($1)";
    sqlx::query(mark).bind(vec![written[1]]).execute(&mut theirs).await.unwrap();
    sqlx::raw_sql("COMMIT").execute(&mut theirs).await.unwrap();
    assert_eq!(ids(&claim(&store, "acme").await), [written[2]]);
    theirs.close().await.unwrap();
    database.drop().await;
}

/// What the TypeScript relay sends: `None` is held.
async fn their_claim(connection: &mut PgConnection) -> Option<Vec<i64>> {
    sqlx::raw_sql("BEGIN").execute(&mut *connection).await.unwrap();
    let lock = "SELECT set_config('idle_in_transaction_session_timeout', '0', true),
                       pg_try_advisory_xact_lock(hashtext('public.outboxMessage'), hashtext($1))";
    let (_, locked): (String, bool) =
        sqlx::query_as(lock).bind("acme").fetch_one(&mut *connection).await.unwrap();
    if !locked {
        sqlx::raw_sql("ROLLBACK").execute(connection).await.unwrap();
        return None;
    }
    let read = "SELECT id FROM public.\"outboxMessage\" WHERE \"tenantId\" = $1 AND \"publishedAt\" IS NULL
                ORDER BY id LIMIT 32";
    Some(sqlx::query_scalar(read).bind("acme").fetch_all(connection).await.unwrap())
}

/// Tables of one name in two schemas, and two tables, do not exclude each other; each store reads its own.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn tables_of_one_name_in_two_schemas_are_two_outboxes(driver: Driver) {
    let database = Database::create(driver).await;
    database.run("CREATE SCHEMA elsewhere; GRANT USAGE ON SCHEMA elsewhere TO PUBLIC").await;
    let here = database.make(&OutboxTable::default()).await;
    let there = database.make(&OutboxTable::default().with_schema("elsewhere")).await;
    database.append(&here, &[message("acme", "here")]).await;
    database.append(&there, &[message("acme", "there"), message("acme", "there")]).await;
    let (first, second) = (database.store(here.description()), database.store(there.description()));
    let (ours, theirs) = (claim(&first, "acme").await, claim(&second, "acme").await);
    assert_eq!((ours.messages.len(), theirs.messages.len()), (1, 2));
    database.drop().await;
}

/// The application's own advisory locks, of one number and of two, are not in the way, nor is a claim in theirs.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_applications_advisory_locks_are_not_disturbed(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let store = database.store(table.description());
    let mut application = database.admin.begin().await.unwrap();
    let key = "hashtext('public.outbox_message')::bigint << 32 | hashtext('acme')::bigint & 4294967295";
    let locks = format!(
        "SELECT pg_advisory_xact_lock({key}), pg_advisory_xact_lock(1, 2), pg_advisory_xact_lock(hashtext('acme'))"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(locks)).execute(&mut *application).await.unwrap();
    let claimed = claim(&store, "acme").await;
    claimed.claim.settle(Settlement::release()).await.unwrap();
    application.rollback().await.unwrap();
    database.drop().await;
}
