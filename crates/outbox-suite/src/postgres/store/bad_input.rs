//! What cannot work, as errors that say what to do.

use outbox_core::{ProbeRequest, Settlement, Store, StoreErrorKind, Tenants};
use outbox_sql::{Columns, OutboxTable};
use outbox_sqlx::postgres::PostgresTable;
use sqlx::postgres::PgConnectOptions;

use crate::postgres::proxy::Proxy;
use crate::postgres::{Database, Driver, ROLE, STORE};
use crate::server::{claim, is_held, message, refused, tenant};

/// A missing table: every operation says so, and works once it is there.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_missing_table_is_named(driver: Driver) {
    let database = Database::create(driver).await;
    let store = database.store(&OutboxTable::default());
    let claim_error = refused(&store, "acme").await;
    let probe_error = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap_err();
    let pending_error = store.pending(&tenant("acme"), 1.try_into().unwrap()).await.unwrap_err();
    for error in [claim_error, probe_error, pending_error] {
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert!(error.message().contains("public.outbox_message does not exist: create it"), "{error}");
    }
    // The writer, too: in one line, without a walk through the causes.
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    let mut connection = database.pool("writer", 1).acquire().await.unwrap();
    let error = table.append(&mut connection, &message("acme", "1")).await.unwrap_err();
    assert!(
        error.to_string().contains("not appended: public.outbox_message does not exist: create it"),
        "{error}"
    );

    database.make(&OutboxTable::default()).await;
    assert!(!is_held(&store, "acme").await);
    // What a writer needs is not what a relay needs.
    database.run(format!("REVOKE INSERT ON outbox_message FROM {ROLE}")).await;
    let error = table.append(&mut connection, &message("acme", "1")).await.unwrap_err();
    assert!(error.to_string().contains("grant INSERT"), "{error}");
    drop(connection);
    database.drop().await;
}

/// A table that lacks a column: named, and nothing is handed out.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_missing_column_is_named(driver: Driver) {
    let database = Database::create(driver).await;
    database.make(&OutboxTable::default()).await;
    database.run("ALTER TABLE outbox_message DROP COLUMN headers").await;
    let error = refused(&database.store(&OutboxTable::default()), "acme").await;
    assert!(error.message().contains("lacks a column") && error.message().contains("headers"), "{error}");
    let mut columns = Columns::default();
    columns.headers = None;
    columns.published_at = "done_at".into();
    let error = refused(&database.store(&OutboxTable::default().with_columns(columns)), "acme").await;
    assert!(error.message().contains("done_at"), "{error}");
    database.drop().await;
}

/// A role that may read and not mark never gets to publish: the claim itself fails, and says what to grant.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_role_that_cannot_mark_claims_nothing(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database.append(&table, &[message("acme", "1")]).await;
    database.run(format!("REVOKE UPDATE ON outbox_message FROM {ROLE}")).await;
    let store = database.store(table.description());
    let error = refused(&store, "acme").await;
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(error.message().contains("grant SELECT and UPDATE on public.outbox_message"), "{error}");
    database.run(format!("REVOKE SELECT ON outbox_message FROM {ROLE}")).await;
    let error = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap_err();
    assert!(error.message().contains("permission denied"), "{error}");
    database.drop().await;
}

/// Rows that a trigger keeps from being marked are an error, so that the tenant backs off; the others are marked.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn marks_that_a_trigger_swallows_are_an_error(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let written = database.append(&table, &[message("acme", "1"), message("acme", "2")]).await;
    database
        .run(format!(
            "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RETURN CASE WHEN NEW.id = {} THEN NEW END; END $$;
             CREATE TRIGGER swallow BEFORE UPDATE ON outbox_message FOR EACH ROW EXECUTE FUNCTION swallow()",
            written[0]
        ))
        .await;
    let store = database.store(table.description());
    let claimed = claim(&store, "acme").await;
    let published: Vec<_> = claimed.messages.iter().map(|message| message.id).collect();
    let error = claimed.claim.settle(Settlement::published(published)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(error.message().contains("1 of 2 published messages were marked"), "{error}");
    let pending = "SELECT count(*) FROM outbox_message WHERE published_at IS NULL";
    assert_eq!(database.number(pending).await, 1);
    assert!(!is_held(&store, "acme").await);
    database.drop().await;
}

/// A mark that fails at the commit is an error, and nothing is marked.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_commit_that_fails_is_an_error(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database.append(&table, &[message("acme", "1")]).await;
    database
        .run(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RAISE serialization_failure; END $$;
             CREATE CONSTRAINT TRIGGER fail AFTER UPDATE ON outbox_message
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()",
        )
        .await;
    let store = database.store(table.description());
    let claimed = claim(&store, "acme").await;
    let published: Vec<_> = claimed.messages.iter().map(|message| message.id).collect();
    let error = claimed.claim.settle(Settlement::published(published)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
    database.wait_until_nothing_is_left(STORE).await;
    assert_eq!(claim(&store, "acme").await.messages.len(), 1);
    database.drop().await;
}

/// A COMMIT that the server answers by rolling back is an error, though every answer was a good one.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_commit_that_is_answered_by_a_rollback_is_an_error(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database.append(&table, &[message("acme", "1")]).await;
    let proxy = Proxy::start(&database.options).await;
    let store = driver.pool(proxy.options(&database.options), 4).store(table.description());
    let claimed = claim(&store, "acme").await;
    proxy.change("COMMIT", "ABORT ");
    let published: Vec<_> = claimed.messages.iter().map(|message| message.id).collect();
    let error = claimed.claim.settle(Settlement::published(published)).await.unwrap_err();
    assert!(error.message().contains("rolled back: nothing is marked"), "{error}");
    let pending = "SELECT count(*) FROM outbox_message WHERE published_at IS NULL";
    assert_eq!(database.number(pending).await, 1);
    database.drop().await;
}

/// Rows that row security hides from the mark are an error as well.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn marks_that_row_security_forbids_are_an_error(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database.append(&table, &[message("acme", "1"), message("acme", "2")]).await;
    database
        .run(
            "ALTER TABLE outbox_message ENABLE ROW LEVEL SECURITY;
             CREATE POLICY reading ON outbox_message FOR SELECT USING (true);
             CREATE POLICY marking ON outbox_message FOR UPDATE USING (id = 1) WITH CHECK (true)",
        )
        .await;
    let claimed = claim(&database.store(table.description()), "acme").await;
    let published: Vec<_> = claimed.messages.iter().map(|message| message.id).collect();
    let error = claimed.claim.settle(Settlement::published(published)).await.unwrap_err();
    assert!(error.message().contains("1 of 2 published messages were marked"), "{error}");
    database.drop().await;
}

/// A server that is not there is a transient error at once, and no panic.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn an_unreachable_server_is_a_transient_error(driver: Driver) {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let options = PgConnectOptions::new().host("127.0.0.1").port(nobody);
    let store = driver.pool(options, 4).store(&OutboxTable::default());
    assert_eq!(refused(&store, "acme").await.kind(), StoreErrorKind::Transient);
}
