//! The guards of the claim. Each test fails, every time, if the guard that it names is taken away: it asserts
//! the cause, or brings about the one order of events in which the guard is needed.

use outbox_core::{Settlement, Store, StoreErrorKind};
use outbox_sql::OutboxTable;
use outbox_sql::postgres::ClaimNumber;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Row};

use crate::postgres::proxy::Proxy;
use crate::postgres::{Database, Driver, STORE};
use crate::server::{claim, ids, is_held, message, request};

/// Writes down what a claim's transaction looks like when it marks, and again when it commits.
const WATCH: &str = "
    CREATE TABLE seen (moment text, isolation text, read_only text, idle_timeout text, lock_timeout text,
                       keepalive text, locks bigint);
    GRANT INSERT ON seen TO PUBLIC;
    CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO seen SELECT TG_ARGV[0], current_setting('transaction_isolation'),
            current_setting('transaction_read_only'), current_setting('idle_in_transaction_session_timeout'),
            current_setting('lock_timeout'), current_setting('client_connection_check_interval'),
            (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid());
        RETURN NEW;
    END $$;
    CREATE TRIGGER marking BEFORE UPDATE ON outbox_message FOR EACH ROW EXECUTE FUNCTION watch('mark');
    CREATE CONSTRAINT TRIGGER committing AFTER UPDATE ON outbox_message
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION watch('commit');";

/// A database with these settings, a message of `acme`, and what a claim on it looked like from within.
async fn seen(driver: Driver, settings: &[&str], column: &str) -> String {
    let database = Database::create(driver).await;
    for setting in settings {
        database.run(format!("ALTER DATABASE {} SET {setting}", database.name)).await;
    }
    // Sessions that begin from here on have the settings, the superuser's too.
    let mut writer = database.clone();
    writer.admin = PgPoolOptions::new()
        .connect_lazy_with(database.options.clone().options([("default_transaction_read_only", "off")]));
    let table = writer.make(&OutboxTable::default()).await;
    writer.run(WATCH).await;
    writer.append(&table, &[message("acme", "1")]).await;
    // The second claim is the one that sends everything at once.
    let store = writer.store(table.description());
    claim(&store, "acme").await.claim.settle(Settlement::release()).await.unwrap();
    let claimed = claim(&store, "acme").await;
    let published = claimed.messages.iter().map(|message| message.id);
    claimed.claim.settle(Settlement::published(published)).await.unwrap();
    let seen = writer.text(format!("SELECT string_agg({column}, ' ' ORDER BY moment DESC) FROM seen")).await;
    store.close().await;
    writer.admin.close().await;
    database.drop().await;
    seen
}

/// Guard: explicit isolation. A claim is READ COMMITTED, whatever the server's default is.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_is_read_committed_where_the_default_is_repeatable_read(driver: Driver) {
    let isolation = seen(driver, &["default_transaction_isolation = 'repeatable read'"], "isolation").await;
    assert_eq!(isolation, "read committed read committed");
}

/// Guard: explicit isolation.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_is_read_committed_where_the_default_is_serializable(driver: Driver) {
    let isolation = seen(driver, &["default_transaction_isolation = 'serializable'"], "isolation").await;
    assert_eq!(isolation, "read committed read committed");
}

/// Guard: read-write. A default of read-only is no standby: the claim can mark, or would have failed itself.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_is_read_write_where_the_default_is_read_only(driver: Driver) {
    assert_eq!(seen(driver, &["default_transaction_read_only = on"], "read_only").await, "off off");
}

/// Guard: lifted timeout. The server's limit on idle transactions does not end a claim that publishes slowly.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_lifts_the_timeout_of_idle_transactions(driver: Driver) {
    let idle = seen(driver, &["idle_in_transaction_session_timeout = '7min'"], "idle_timeout").await;
    assert_eq!(idle, "0 0");
}

/// A wait for a lock, and a statement whose client vanished, are bounded on the server as well.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_bounds_what_outlives_its_client(driver: Driver) {
    assert_eq!(seen(driver, &[], "lock_timeout || '/' || keepalive").await, "30s/1s 30s/1s");
}

/// Guard: transaction scope. The lock is held until the mark is committed, and goes with the commit.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_lock_dies_with_the_transaction_and_not_before(driver: Driver) {
    assert_eq!(
        seen(driver, &[], "locks::text").await,
        "1 1",
        "the lock is held at the mark and at the commit"
    );

    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let (first, second) = (database.store(table.description()), database.store(table.description()));
    let written = database.append(&table, &[message("acme", "1"), message("acme", "2")]).await;
    for published in [vec![], vec![written[0]], vec![written[1]]] {
        let claimed = claim(&first, "acme").await;
        assert!(is_held(&second, "acme").await);
        let settlement = Settlement::published(published.into_iter().map(outbox_core::MessageId::new));
        claimed.claim.settle(settlement).await.unwrap();
        // The connection is in the pool again: a lock of its session would still be there.
        assert!(!is_held(&second, "acme").await);
        drop(claim(&second, "acme").await);
    }
    database.drop().await;
}

/// How a store connects whose lock statement goes through the gate: it is changed on its way.
async fn through_gate(database: &Database) -> PgConnectOptions {
    let proxy = Proxy::start(&database.options).await;
    proxy.change("pg_catalog.hashtext", "      gate.hashtext");
    proxy.options(&database.store_options())
}

/// Guard: lock before read, each in a statement of its own; and explicit isolation once more.
///
/// The second claim is stopped inside its lock statement, before it asks for the lock. Meanwhile the first
/// marks everything and commits. The second then gets the lock: if its read shared the lock's snapshot, or came
/// before it, it would hand out again what the first one marked.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_that_gets_its_lock_late_reads_after_it(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let written = database.append(&table, &[message("acme", "1"), message("acme", "2")]).await;
    database.add_gate().await;
    let first = database.store(table.description());
    let options =
        through_gate(&database).await.options([("default_transaction_isolation", "repeatable read")]);
    let second = driver.pool(options, 4).store(table.description());

    let claimed = claim(&first, "acme").await;
    assert_eq!(ids(&claimed), written);
    let gate = database.shut_gate().await;
    let late = tokio::spawn({
        let second = second.clone();
        async move { claim(&second, "acme").await }
    });
    database.wait_until_at_gate().await;
    let published: Vec<_> = claimed.messages.iter().map(|message| message.id).collect();
    claimed.claim.settle(Settlement::published(published)).await.unwrap();
    gate.open().await;
    let late = late.await.unwrap();
    assert_eq!(ids(&late), [0_i64; 0], "what the first claim marked is handed out again");
    drop(late);
    database.drop().await;
}

/// Guard: the armed connection, with a statement running. A claim whose future is dropped inside its
/// transaction leaves no open transaction in the pool: the application's next write there is really there.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_dropped_inside_its_transaction_does_not_poison_the_pool(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database.add_gate().await;
    let options = through_gate(&database).await;
    let pool = driver.pool(options, 1);
    let store = pool.store(table.description());

    let gate = database.shut_gate().await;
    let claiming = tokio::spawn(async move { store.claim(&request("acme")).await.map(|_| ()) });
    database.wait_until_at_gate().await;
    claiming.abort();
    assert!(claiming.await.unwrap_err().is_cancelled());
    gate.open().await;

    pool.append(table.description(), &message("acme", "1")).await;
    assert_eq!(database.number("SELECT count(*) FROM outbox_message").await, 1, "the write was lost");
    database.wait_until_nothing_is_left(STORE).await;
    pool.close().await;
    database.drop().await;
}

/// Guard: the armed connection, while a message is being published: no statement runs.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_dropped_claim_does_not_poison_the_pool(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let pool = database.store_pool(1);
    let store = pool.store(table.description());
    database.append(&table, &[message("acme", "1")]).await;

    drop(claim(&store, "acme").await);
    pool.append(table.description(), &message("acme", "2")).await;
    assert_eq!(database.number("SELECT count(*) FROM outbox_message").await, 2, "the write was lost");
    database.wait_until_nothing_is_left(STORE).await;
    pool.close().await;
    database.drop().await;
}

/// The armed connection's drop needs no runtime and does not panic, on a pool that keeps connections too, which
/// spawns a task in its drop.
pub(crate) fn a_claim_can_be_dropped_on_any_thread(driver: Driver) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, claimed) = runtime.block_on(async {
        let database = Database::create(driver).await;
        let table = database.make(&OutboxTable::default()).await;
        let store = driver.pool_that_keeps_one(database.store_options(), 2).store(table.description());
        (database, claim(&store, "acme").await)
    });
    std::thread::spawn(move || drop(claimed)).join().expect("dropping a claim panicked");
    runtime.block_on(async {
        database.wait_until_nothing_is_left(STORE).await;
        database.drop().await;
    });
}

/// A future of the store that is polled without a runtime says so, and does not panic.
pub(crate) fn a_claim_outside_of_a_runtime_is_an_error(driver: Driver) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options = PgConnectOptions::new();
    let pool = runtime.block_on(async { driver.pool(options, 1) });
    let store = pool.store(&OutboxTable::default());
    let request = request("acme");
    let mut claiming = store.claim(&request);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(answer) = claiming.as_mut().poll(&mut context) else {
        panic!("it waits for something");
    };
    let error = answer.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(error.message().contains("runtime"), "{error}");
}

/// Only the claim's own transaction confirms its commit: no other transaction of the session, no session without one,
/// and none that was rolled back.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_commit_is_confirmed_by_the_claim_s_own_transaction_alone(driver: Driver) {
    let database = Database::create(driver).await;
    let mut session = database.admin.acquire().await.unwrap();
    let (mine, other) = (ClaimNumber::draw(), ClaimNumber::draw());
    let mut confirms = async |begin: String, end: String| -> bool {
        let text = AssertSqlSafe(format!("{begin}; {end}"));
        let answers = sqlx::raw_sql(text).fetch_all(&mut *session).await.unwrap();
        answers.last().unwrap().get(0)
    };
    let begin = |number: ClaimNumber| format!("BEGIN; {}", number.announce());
    assert!(!confirms("SELECT 1".into(), mine.commit_and_confirm()).await, "there is no claim");
    assert!(confirms(begin(mine), mine.commit_and_confirm()).await);
    assert!(!confirms(begin(other), mine.commit_and_confirm()).await, "it is another's");
    assert!(confirms(begin(mine), mine.commit_and_confirm()).await);
    let rolled_back = other.commit_and_confirm().replace("COMMIT", "ROLLBACK");
    assert!(!confirms(begin(other), rolled_back).await, "the session still has the number before");
    assert!(!confirms("SELECT 1".into(), mine.commit_and_confirm()).await, "that claim has ended");
    drop(session);
    database.drop().await;
}
