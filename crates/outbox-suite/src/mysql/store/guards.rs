//! The guards of the claim. Each test fails, every time, if the guard that it names is taken away.

use outbox_core::{MessageId, ProbeRequest, Settlement, Store, StoreErrorKind, Tenants};
use outbox_sql::OutboxTable;

use crate::mysql::{Database, Driver, STORE};
use crate::server::{BOUND, StorePool, claim, ids, is_held, message, refused, tenant};

/// Guard: explicit isolation, and the lock before the read. A claim sees what was marked and committed before it,
/// whatever the session's default is, and its mark blocks no insert of the application.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_is_read_committed_whatever_the_default_is(driver: Driver) {
    for default in ["REPEATABLE READ", "SERIALIZABLE"] {
        let database = Database::create(driver).await;
        let table = database.make(&OutboxTable::default()).await;
        let begin: &'static str =
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {default}, READ ONLY").leak();
        let pool = driver.pool_that_begins(database.options_of(STORE), 1, begin);
        let store = pool.store(table.description());
        let written = database.append(&table, &[message("acme", "1"), message("acme", "2")]).await;
        let claimed = claim(&store, "acme").await;
        assert_eq!(ids(&claimed), written);

        // A clean row of the same tenant, and one of a tenant whose claims row would be the next one.
        let isolation = "SELECT trx_isolation_level FROM information_schema.INNODB_TRX
             WHERE trx_mysql_thread_id <> connection_id() AND trx_mysql_thread_id IN
                 (SELECT ID FROM information_schema.PROCESSLIST WHERE DB = database()) LIMIT 1";
        database.wait_until(&format!("({isolation}) IS NOT NULL")).await;
        assert_eq!(database.text(isolation).await, "READ COMMITTED");
        let mut application = database.admin.begin().await.unwrap();
        sqlx::raw_sql("SET SESSION innodb_lock_wait_timeout = 1").execute(&mut *application).await.unwrap();
        table.append(&mut application, &message("acme", "3")).await.unwrap();
        table.append(&mut application, &message("acmf", "4")).await.unwrap();
        claimed.claim.settle(Settlement::published(written.into_iter().map(MessageId::new))).await.unwrap();
        table.append(&mut application, &message("acme", "5")).await.unwrap();
        application.commit().await.unwrap();
        assert_eq!(claim(&store, "acme").await.messages.len(), 2);
        store.close().await;
        database.drop().await;
    }
}

const SETTINGS: &str = "concat_ws(' ', @@SESSION.innodb_lock_wait_timeout, @@SESSION.lock_wait_timeout,
    @@SESSION.wait_timeout, @@SESSION.sql_safe_updates /*M! , @@SESSION.idle_transaction_timeout, @@SESSION.idle_write_transaction_timeout,
    @@SESSION.max_statement_time */ /*!80000 , @@SESSION.max_execution_time */)";

/// Guard: the session's settings are the application's again when its connection is back, after a claim that
/// settled, released, was held, and after one that added the tenant's row or waited for its turn to do so in vain.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_connection_that_comes_back_has_the_application_s_settings(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let begin = "SET SESSION innodb_lock_wait_timeout = 7, lock_wait_timeout = 8, wait_timeout = 9, sql_safe_updates = 1
        /*M! , idle_transaction_timeout = 10, idle_write_transaction_timeout = 11, max_statement_time = 12.5 */
        /*!80000 , max_execution_time = 13 */";
    let pool = driver.pool_that_begins(database.options_of(STORE), 1, begin);
    let store = pool.store(table.description());
    let other = database.store(table.description());
    let ask = format!("SELECT {SETTINGS}, cast(connection_id() AS char)");
    let settings = async || pool.pairs(&ask).await.remove(0);
    let before = settings().await;
    assert!(before.0.starts_with("7 8 9 "), "{before:?}");
    claim(&store, "acme").await.claim.settle(Settlement::release()).await.unwrap();
    assert_eq!(settings().await, before);
    let written = database.append(&table, &[message("acme", "1")]).await;
    let claimed = claim(&store, "acme").await;
    claimed.claim.settle(Settlement::published(written.into_iter().map(MessageId::new))).await.unwrap();
    assert_eq!(settings().await, before);
    let held = claim(&other, "acme").await;
    assert!(is_held(&store, "acme").await);
    assert_eq!(settings().await, before, "and it is the same session");
    let mut adding = database.admin.begin().await.unwrap();
    let lock = "SELECT 1 FROM outbox_message_claims WHERE tenant_id = '' FOR UPDATE";
    sqlx::raw_sql(lock).execute(&mut *adding).await.unwrap();
    assert!(is_held(&store, "globex").await, "its row cannot be added");
    assert_eq!(settings().await, before, "after a wait for whoever adds a row");
    adding.rollback().await.unwrap();
    drop(held);
    store.close().await;
    database.drop().await;
}

/// Guard: the end of a claim says that nothing follows it. A session that chains its transactions has none open when
/// it comes back, where the next claim would fail; one that is released at each end stays.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_connection_that_comes_back_has_no_transaction_and_stays_whatever_follows_a_commit_there(
    driver: Driver,
) {
    for begin in ["SET SESSION completion_type = 'CHAIN'", "SET SESSION completion_type = 'RELEASE'"] {
        let database = Database::create(driver).await;
        let table = database.make(&OutboxTable::default()).await;
        let store = driver.pool_that_begins(database.options_of(STORE), 1, begin).store(table.description());
        let pool = StorePool::of(&store);
        let session = async || pool.pairs("SELECT cast(connection_id() AS char), ''").await.remove(0);
        let before = session().await;
        // Adds the tenant's row, and so commits once more.
        claim(&store, "acme").await.claim.settle(Settlement::release()).await.unwrap();
        assert_eq!(database.transactions(STORE).await, 0, "{begin}, after a release");
        let written = database.append(&table, &[message("acme", "1")]).await;
        let claimed = claim(&store, "acme").await;
        claimed.claim.settle(Settlement::published(written.into_iter().map(MessageId::new))).await.unwrap();
        assert_eq!(database.transactions(STORE).await, 0, "{begin}, after a mark");
        let claimed = claim(&store, "acme").await;
        assert_eq!(ids(&claimed), [0; 0], "{begin}: it is marked");
        claimed.claim.settle(Settlement::release()).await.unwrap();
        assert_eq!(session().await, before, "{begin}: it is the same session");
        store.close().await;
        database.drop().await;
    }
}

/// Guard: while a claim is held, no idle timeout of the application's ends it before its own does; and that one
/// frees the tenant of a holder from which nothing is heard.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_silent_holder_loses_the_tenant_within_its_bound_and_not_before(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let begin = "SET SESSION wait_timeout = 1 /*M! , idle_transaction_timeout = 1, idle_write_transaction_timeout = 1 */";
    let pool = driver.pool_that_begins(database.options_of(STORE), 1, begin);
    let store = pool.store(table.description());
    let silence = std::time::Duration::from_secs(4);
    let silent = store.clone().with_max_silence(silence);
    let other = database.store(table.description());
    let written = database.append(&table, &[message("acme", "1")]).await;
    let mut claimed = claim(&silent, "acme").await;
    let since = std::time::Instant::now();
    // What the test waits for is that the application's timeout passes, which nothing else tells.
    tokio::time::sleep(std::time::Duration::from_millis(2_200)).await;
    claimed.claim.verify().await.unwrap();
    assert!(is_held(&other, "acme").await, "a verified claim lives, past the application's timeout");
    while is_held(&other, "acme").await {
        assert!(since.elapsed() < BOUND, "a silent holder keeps its tenant");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(since.elapsed() >= silence, "it was ended before its bound");
    let error = claimed.claim.settle(Settlement::published(written.into_iter().map(MessageId::new))).await;
    assert_eq!(error.unwrap_err().kind(), StoreErrorKind::Transient);
    assert_eq!(claim(&other, "acme").await.messages.len(), 1, "nothing was marked");
    database.drop().await;
}

/// Guard: a probe is refused where a read ends no transaction. It would look at one snapshot for ever, and health
/// would be green. So is a claim, which may come before it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_probe_or_a_claim_without_autocommit_is_refused(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let pool = driver.pool_that_begins(database.options_of(STORE), 1, "SET autocommit = 0");
    let store = pool.store(table.description());
    for tenants in [Tenants::Discovered, Tenants::Named([tenant("acme")].into())] {
        let error = store.probe(&ProbeRequest::new(tenants)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert!(error.message().starts_with("autocommit is off in the pool's sessions"), "{error}");
    }
    let error = refused(&store, "acme").await;
    assert!(error.message().starts_with("autocommit is off in the pool's sessions"), "{error}");
    drop(pool);
    store.close().await;
    database.drop().await;
}

/// Guard: a claim on a server that cannot mark fails itself.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_read_only_session_or_user_cannot_claim(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database.append(&table, &[message("acme", "1")]).await;
    let store = database.store(table.description());
    database.run(format!("REVOKE UPDATE ON {}.outbox_message FROM {STORE}@'%'", database.name)).await;
    let error = refused(&store, "acme").await;
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(error.message().contains("grant SELECT and UPDATE on outbox_message"), "{error}");
    // Reading needs no such right.
    assert_eq!(store.pending(&tenant("acme"), 10.try_into().unwrap()).await.unwrap().len(), 1);
    database.drop().await;
}
