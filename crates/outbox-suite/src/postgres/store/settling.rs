//! What a store is told to do with a published row, and whether the commit waits for the disk.

use outbox_core::{MessageId, Settlement, Settling};
use outbox_sql::OutboxTable;
use outbox_sql::postgres::Durability;
use outbox_sqlx::postgres::PostgresTable;

use crate::AnyStore;
use crate::postgres::{Database, Driver, ROLE};
use crate::server::{StorePool, claim, ids, message, refused};

async fn with_rows(driver: Driver, count: usize) -> (Database, PostgresTable, Vec<i64>) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let written = database.append(&table, &vec![message("acme", "{}"); count]).await;
    (database, table, written)
}

/// A store that deletes, whose role may delete and not mark.
async fn deleting(database: &Database, table: &PostgresTable) -> AnyStore {
    database
        .run(format!("REVOKE UPDATE ON outbox_message FROM {ROLE}; GRANT DELETE ON outbox_message TO {ROLE}"))
        .await;
    database.store(table.description()).with_settling(Settling::Delete)
}

/// What a session of the pool has.
async fn show(pool: &StorePool) -> String {
    pool.pairs("SELECT current_setting('synchronous_commit'), ''").await.remove(0).0
}

async fn rows(database: &Database) -> String {
    database
        .text(
            "SELECT coalesce(string_agg(id || coalesce('*' || left(published_at::text, 0), ''), ' ' ORDER BY id), '')
             FROM outbox_message",
        )
        .await
}

/// Deleting takes exactly the rows whose messages were accepted, and needs no right to mark.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn settling_deletes_exactly_the_accepted_rows(driver: Driver) {
    let (database, table, written) = with_rows(driver, 4).await;
    let store = deleting(&database, &table).await;
    let claimed = claim(&store, "acme").await;
    assert_eq!(ids(&claimed), written);
    let accepted = [written[0], written[2]].map(MessageId::new);
    claimed.claim.settle(Settlement::published(accepted)).await.unwrap();
    assert_eq!(rows(&database).await, format!("{} {}", written[1], written[3]));
    assert_eq!(ids(&claim(&store, "acme").await), [written[1], written[3]]);
    database.drop().await;
}

/// A row that somebody marked meanwhile, who does not hold the tenant, is history and not deleted; the settlement
/// says so, as it does where it marks.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn deleting_spares_what_somebody_else_marked_and_says_so(driver: Driver) {
    let (database, table, written) = with_rows(driver, 2).await;
    let store = deleting(&database, &table).await;
    let claimed = claim(&store, "acme").await;
    database.run(format!("UPDATE outbox_message SET published_at = now() WHERE id = {}", written[0])).await;
    let settled = claimed.claim.settle(Settlement::published(written.iter().copied().map(MessageId::new)));
    let error = settled.await.unwrap_err();
    assert!(error.message().contains("1 of 2 published messages"), "{error}");
    assert_eq!(rows(&database).await, format!("{}*", written[0]));
    database.drop().await;
}

/// Without the right to delete, the claim itself fails and says what to grant, and so does `check()`; the right to
/// mark does not help.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn who_may_not_delete_cannot_claim_to_delete(driver: Driver) {
    let (database, table, _) = with_rows(driver, 1).await;
    let store = database.store(table.description()).with_settling(Settling::Delete);
    let error = refused(&store, "acme").await;
    assert!(error.message().contains("grant SELECT and DELETE on public.outbox_message"), "{error}");
    let found = store.check().await.unwrap();
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(finding.message.contains("GRANT DELETE ON \"public\".\"outbox_message\""), "{finding}");

    let store = deleting(&database, &table).await;
    assert_eq!(store.check().await.unwrap(), []);
    assert_eq!(claim(&store, "acme").await.messages.len(), 1);
    // Who marks needs the right to mark, all the same.
    let marking = database.store(table.description());
    assert!(refused(&marking, "acme").await.message().contains("grant SELECT and UPDATE"));
    database.drop().await;
}

/// A relaxed commit is that of the claim's transaction: what else runs on its connection is as durable as ever.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_relaxed_claim_relaxes_nothing_but_itself(driver: Driver) {
    let (database, table, written) = with_rows(driver, 2).await;
    database
        .run(
            "CREATE TABLE seen (setting text);
             GRANT INSERT ON seen TO PUBLIC;
             CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO seen VALUES (current_setting('synchronous_commit'));
                 RETURN NULL;
             END $$;
             CREATE CONSTRAINT TRIGGER committing AFTER UPDATE ON outbox_message
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION watch()",
        )
        .await;
    let pool = database.store_pool(1);
    let durable = pool.store(table.description());
    let relaxed = durable.clone().with_durability(Durability::Relaxed);
    for (store, id, seen) in [(&relaxed, written[0], "off"), (&durable, written[1], "off on")] {
        let claimed = claim(store, "acme").await;
        claimed.claim.settle(Settlement::published([MessageId::new(id)])).await.unwrap();
        let settings = database.text("SELECT string_agg(setting, ' ' ORDER BY setting) FROM seen").await;
        assert_eq!(settings, seen);
        // The pool has one connection: it is the claim's.
        assert_eq!(show(&pool).await, "on");
    }
    drop(claim(&relaxed, "acme").await);
    assert_eq!(show(&pool).await, "on");
    pool.close().await;
    database.drop().await;
}
