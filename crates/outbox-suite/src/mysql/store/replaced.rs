//! A table that somebody replaces while a message is published: the claim's transaction is in the way.

use outbox_core::{MessageId, Settlement};
use outbox_sql::OutboxTable;

use crate::mysql::{Database, Driver};
use crate::server::{claim, message};

/// Promise: what is marked is what was read, under the lock that was taken. A table that is dropped, emptied or
/// renamed could give its name, and its ids, to another one; each of these has to wait for the mark.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_keeps_its_tables_from_being_replaced_before_its_mark(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let written = database.append(&table, &[message("acme", "1")]).await;
    let claimed = claim(&database.store(table.description()), "acme").await;
    let mut admin = database.admin.acquire().await.unwrap();
    sqlx::raw_sql("SET SESSION lock_wait_timeout = 1").execute(&mut *admin).await.unwrap();
    for statement in [
        "TRUNCATE outbox_message",
        "DROP TABLE outbox_message",
        "RENAME TABLE outbox_message TO old",
        "RENAME TABLE outbox_message_claims TO old",
    ] {
        let outcome = sqlx::raw_sql(statement).execute(&mut *admin).await;
        let error = outcome.map(|_| panic!("done beneath the claim: {statement}")).unwrap_err();
        assert!(error.to_string().contains("1205"), "{statement}: {error}");
    }
    sqlx::raw_sql("SET SESSION lock_wait_timeout = DEFAULT").execute(&mut *admin).await.unwrap();
    drop(admin);
    claimed.claim.settle(Settlement::published(written.into_iter().map(MessageId::new))).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM outbox_message WHERE published_at IS NULL").await, 0);
    database.drop().await;
}
