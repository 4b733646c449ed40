//! What `check` says of live databases.

use outbox_core::{MessageId, Settlement, Settling};
use outbox_sql::OutboxTable;
use outbox_sqlx::mysql::Severity;

use crate::mysql::{Database, Driver, STORE};
use crate::server::{StorePool, claim, message};

/// A table as the DDL makes it, without and with what breaks it: each is found, in words that say what to do.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn what_does_not_suit_the_store_is_found(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let store = database.store(table.description());
    assert_eq!(store.check().await.unwrap(), []);
    let claims = format!("{}.outbox_message_claims", database.name);
    for (breaks, mends, says) in [
        (
            "ALTER TABLE outbox_message MODIFY tenant_id varchar(191) CHARACTER SET utf8mb4 NOT NULL"
                .to_owned(),
            "ALTER TABLE outbox_message MODIFY tenant_id varbinary(255) NOT NULL".to_owned(),
            "tenant_id is varchar(191): make it varbinary(255)",
        ),
        (
            "ALTER TABLE outbox_message DROP INDEX outbox_pending".to_owned(),
            "ALTER TABLE outbox_message ADD INDEX `outbox_pending` (`published_at`, `tenant_id`, `id`)"
                .to_owned(),
            "has no index of what is pending",
        ),
        (
            "ALTER TABLE outbox_message ENGINE = MyISAM".to_owned(),
            "ALTER TABLE outbox_message ENGINE = InnoDB".to_owned(),
            "has the engine MyISAM",
        ),
        (
            "ALTER TABLE outbox_message MODIFY published_at datetime(6) NULL ON UPDATE CURRENT_TIMESTAMP(6)"
                .to_owned(),
            "ALTER TABLE outbox_message MODIFY published_at datetime(6) NULL".to_owned(),
            "published_at is set by every UPDATE",
        ),
        (
            "ALTER TABLE outbox_message MODIFY published_at datetime(6) NULL DEFAULT CURRENT_TIMESTAMP(6)"
                .to_owned(),
            "ALTER TABLE outbox_message MODIFY published_at datetime(6) NULL".to_owned(),
            "born marked",
        ),
        (
            format!(
                "GRANT TRIGGER ON {db}.outbox_message TO {STORE}@'%'; CREATE TRIGGER {db}.spoils BEFORE INSERT \
                 ON {db}.outbox_message FOR EACH ROW SET NEW.published_at = utc_timestamp(6)",
                db = database.name
            ),
            format!("DROP TRIGGER {}.spoils", database.name),
            "is written, marked or deleted (spoils)",
        ),
        (
            "DELETE FROM outbox_message_claims".to_owned(),
            "INSERT INTO outbox_message_claims (tenant_id) VALUES (x'')".to_owned(),
            "lacks its empty row",
        ),
        (
            format!("REVOKE UPDATE ON {}.outbox_message FROM {STORE}@'%'", database.name),
            format!("GRANT UPDATE ON {}.outbox_message TO {STORE}@'%'", database.name),
            "may not settle messages of outbox_message: grant SELECT and UPDATE",
        ),
        (
            format!("REVOKE INSERT ON {claims} FROM {STORE}@'%'"),
            format!("GRANT INSERT ON {claims} TO {STORE}@'%'"),
            "lacks INSERT on outbox_message_claims",
        ),
        (
            "RENAME TABLE outbox_message_claims TO away".to_owned(),
            "RENAME TABLE away TO outbox_message_claims".to_owned(),
            "there is no table outbox_message_claims",
        ),
    ] {
        database.run(breaks.as_str()).await;
        let found = store.check().await.unwrap();
        assert!(found.iter().any(|finding| finding.message.contains(says)), "{breaks}: {found:#?}");
        database.run(mends).await;
        assert_eq!(store.check().await.unwrap(), [], "after {breaks}");
    }
    let deleting = store.clone().with_settling(Settling::Delete).check().await.unwrap();
    assert!(deleting[0].message.contains("grant SELECT and DELETE"), "{deleting:?}");
    let nowhere = StorePool::of(&store).store(&OutboxTable::new("nowhere"));
    let found = nowhere.check().await.unwrap();
    assert!(found.iter().all(|finding| finding.severity == Severity::Error) && found.len() == 2, "{found:?}");

    let options = database.options_of(STORE);
    let store = driver.pool_that_begins(options, 4, "SET autocommit = 0").store(table.description());
    let found = store.check().await.unwrap();
    assert!(found.len() == 1 && found[0].message.starts_with("autocommit is off"), "{found:?}");
    store.close().await;
    database.drop().await;
}

/// MariaDB keeps the versions of a table's rows, if it is told to: a table like others to us.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_table_with_system_versioning_works_and_suits(driver: Driver) {
    let database = Database::create(driver).await;
    if !database.text("SELECT version()").await.contains("MariaDB") {
        return database.drop().await;
    }
    let table = database.make(&OutboxTable::default()).await;
    database.run("ALTER TABLE outbox_message ADD SYSTEM VERSIONING").await;
    database.run(format!("GRANT DELETE ON {}.outbox_message TO outbox_test_store@'%'", database.name)).await;
    for settling in [Settling::Mark, Settling::Delete] {
        let store = database.store(table.description()).with_settling(settling);
        assert_eq!(store.check().await.unwrap(), [], "{settling:?}");
        let written = database.append(&table, &[message("acme", "1"), message("acme", "2")]).await;
        let claimed = claim(&store, "acme").await;
        assert_eq!(claimed.messages.len(), 2, "{settling:?}");
        let published = written.into_iter().map(MessageId::new);
        claimed.claim.settle(Settlement::published(published)).await.unwrap();
        let again = claim(&store, "acme").await;
        assert!(again.messages.is_empty(), "{settling:?}");
        again.claim.settle(Settlement::release()).await.unwrap();
    }
    database.drop().await;
}
