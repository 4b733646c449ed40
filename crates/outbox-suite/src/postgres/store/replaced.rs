//! A table that somebody replaces while a message is published: the claim's transaction is in the way.

use outbox_core::{MessageId, Settlement};
use outbox_sql::OutboxTable;
use sqlx::AssertSqlSafe;

use crate::postgres::{Database, Driver};
use crate::server::{claim, message};

/// Promise: what is marked is what was read. A table that is dropped, emptied, renamed or moved away could give its
/// name, and its ids, to another one; each of these has to wait for the mark.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_keeps_its_table_from_being_replaced_before_its_mark(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database.run("CREATE SCHEMA elsewhere").await;
    let written = database.append(&table, &[message("acme", "1")]).await;
    let claimed = claim(&database.store(table.description()), "acme").await;
    let replace = [
        "TRUNCATE outbox_message RESTART IDENTITY",
        "DROP TABLE outbox_message",
        "ALTER TABLE outbox_message RENAME TO old",
        "ALTER TABLE outbox_message SET SCHEMA elsewhere",
        "DROP SCHEMA public CASCADE",
    ];
    for statement in replace {
        let mut transaction = database.admin.begin().await.unwrap();
        let impatient = format!("SET LOCAL lock_timeout = '50ms'; {statement}");
        let outcome = sqlx::raw_sql(AssertSqlSafe(impatient)).execute(&mut *transaction).await;
        let error = outcome.map(|_| panic!("done beneath the claim: {statement}")).unwrap_err();
        let code = error.as_database_error().and_then(|error| error.code().map(|code| code.to_string()));
        assert_eq!(code.as_deref(), Some("55P03"), "{statement}: {error}");
        transaction.rollback().await.unwrap();
    }
    claimed.claim.settle(Settlement::published(written.into_iter().map(MessageId::new))).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM outbox_message WHERE published_at IS NULL").await, 0);
    database.drop().await;
}
