//! Other people's locks and transactions.

use std::io::Write as _;
use std::time::{Duration, Instant};

use outbox_core::OperationKind;
use outbox_testkit::Recorder;
use rustix::process::Signal;

use crate::postgres::{Database, Driver, STORE, Stage};
use crate::server::faults::processes::{CLAIM, Other};
use crate::server::{
    Entry, Gate, Replica, SOON, ServerDatabase as _, assert_pool_is_whole, quick, soon, tenant,
};

const TIMEOUT: Duration = Duration::from_millis(400);

/// `LOCK TABLE … IN ACCESS EXCLUSIVE MODE` while a message is being published waits for the batch, and the mark does
/// not wait for it. Once the table is locked, what the relay tries fails with the store's timeout and health is
/// red; when the lock goes, the relay goes on, and nothing is published twice.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_table_lock_asked_for_during_a_publish_waits_for_the_mark_and_repeats_nothing(
    driver: Driver,
) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 6).await;
    let gate = Gate::at(written[2]);
    let recorder = Recorder::around(gate.clone());
    let store = stage.store(3);
    let config = quick().store_timeout(TIMEOUT).health_timeout(TIMEOUT).initial_batch(3).max_batch(3);
    let replica = Replica::start(&store, recorder.clone(), config);
    gate.entered().await;
    let admin = stage.database.admin.clone();
    let locking = tokio::spawn(async move {
        let mut locker = admin.begin().await.unwrap();
        let lock = "LOCK TABLE outbox_message IN ACCESS EXCLUSIVE MODE";
        sqlx::raw_sql(lock).execute(&mut *locker).await.unwrap();
        locker
    });
    let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    stage.database.wait_until(waiting).await;
    gate.open();
    replica.journal.wait_for(1, |entry| *entry == Entry::Settled(3)).await;
    let locker = soon("the table is locked", locking).await.unwrap();
    let published = recorder.deliveries().len();
    let failed = |entry: &Entry| matches!(entry, Entry::Failed(..));
    let begin = Instant::now();
    let before = replica.journal.count(failed);
    replica.journal.wait_for(before + 2, failed).await;
    assert!(begin.elapsed() < SOON, "two attempts took {:?}", begin.elapsed());
    replica.health(|report| !report.is_healthy()).await;
    assert_eq!(recorder.deliveries().len(), published, "published while the table was locked");

    locker.rollback().await.unwrap();
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    replica.health(outbox_core::HealthReport::is_healthy).await;
    replica.stop().await;
    stage.database.wait_until_nothing_is_left(STORE).await;
    assert_pool_is_whole(&store).await;
    stage.end().await;
}

/// A table lock that lets a batch be read and not marked: the mark ends with the store's timeout, the tenant backs
/// off, and recovers when the lock goes; only that batch is published again. The last of the marks that ended so may
/// be done all the same: its COMMIT was sent, and the server waits a little longer than the store.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_table_locked_during_the_mark_costs_that_batch_published_again(driver: Driver) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 6).await;
    let gate = Gate::at(written[2]);
    let recorder = Recorder::around(gate.clone());
    let store = stage.store(3);
    let config = quick().store_timeout(TIMEOUT).initial_batch(3).max_batch(3);
    let replica = Replica::start(&store, recorder.clone(), config);
    gate.entered().await;
    let mut locker = stage.database.admin.begin().await.unwrap();
    sqlx::raw_sql("LOCK TABLE outbox_message IN SHARE MODE").execute(&mut *locker).await.unwrap();
    let begin = Instant::now();
    gate.open();
    replica.journal.wait_for_failed(OperationKind::Settle).await;
    assert!(begin.elapsed() < SOON, "the mark ended after {:?}", begin.elapsed());
    replica.journal.wait_for(1, |entry| matches!(entry, Entry::BackedOff { .. })).await;

    locker.rollback().await.unwrap();
    stage.wait_until_published().await;
    let failures = replica.journal.count(|entry| matches!(entry, Entry::Failed(OperationKind::Settle, _)));
    let after = |failures| [&written[..3].repeat(failures), &written[..]].concat();
    let accepted = recorder.accepted(&tenant("acme"));
    assert!(
        accepted == after(failures) || accepted == after(failures - 1),
        "{accepted:?}, {failures} failures"
    );
    replica.journal.wait_for(1, |entry| matches!(entry, Entry::Recovered(_))).await;
    replica.stop().await;
    stage.database.wait_until_nothing_is_left(STORE).await;
    assert_pool_is_whole(&store).await;
    stage.end().await;
}

/// A replica that looks at a held tenant again and again opens no further connection.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn looking_at_a_held_tenant_many_times_takes_no_further_connection(driver: Driver) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 1).await;
    let gate = Gate::at(written[0]);
    let recorder = Recorder::around(gate.clone());
    let holder = Replica::start(&stage.store(2), recorder.clone(), quick());
    gate.entered().await;
    let options = stage.options().application_name("looker");
    let config = quick().poll_interval(Duration::from_millis(1));
    let looker = Replica::start(&stage.store_as(options, 3), recorder.clone(), config);
    looker.journal.wait_for(50, |entry| *entry == Entry::Held).await;
    let sessions = "SELECT coalesce(string_agg(pid::text, ',' ORDER BY pid), '') FROM pg_stat_activity
                    WHERE application_name = 'looker' AND datname = current_database()";
    let before = stage.database.text(sessions).await;
    looker.journal.wait_for(300, |entry| *entry == Entry::Held).await;
    let after = stage.database.text(sessions).await;
    // A pool that is below its size may grow to it where the machine is busy: that is no leak.
    let is_kept = |session: &str| after.split(',').any(|kept| kept == session);
    assert!(before.split(',').all(is_kept), "other sessions than before: {before}, then {after}");
    assert!(after.split(',').count() <= 3, "{after}");
    assert_eq!(looker.journal.count(|entry| matches!(entry, Entry::BackedOff { .. })), 0);
    gate.open();
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    looker.stop().await;
    holder.stop().await;
    stage.end().await;
}

/// A settlement that the server cancels does not bring its connection, with the lock on it, back to the pool: the
/// other replica gets the tenant, and the pool is whole.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_cancelled_settlement_does_not_keep_the_tenant_locked_in_the_pool(driver: Driver) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 2).await;
    let gate = Gate::at(written[1]);
    let (first, second) = (Recorder::around(gate.clone()), Recorder::new());
    let store = stage.store_as(stage.options().options([("statement_timeout", "200ms")]), 2);
    let holder = Replica::start(&store, first.clone(), quick().max_back_off(Duration::from_mins(1)));
    gate.entered().await;
    let mut locker = stage.database.admin.begin().await.unwrap();
    // The mark waits for this, and a read does not.
    sqlx::raw_sql("LOCK TABLE outbox_message IN SHARE MODE").execute(&mut *locker).await.unwrap();
    gate.open();
    holder.journal.wait_for_failed(OperationKind::Settle).await;
    locker.rollback().await.unwrap();
    holder.stop().await;

    let other = Replica::start(&stage.store(2), second.clone(), quick());
    soon("the other replica publishes", second.wait_for_accepted(2)).await;
    stage.wait_until_published().await;
    assert_pool_is_whole(&store).await;
    other.stop().await;
    stage.end().await;
}

/// SIGSTOP as the rows of a claim arrive, until the server has ended its session and another replica has published
/// them: on waking the relay asks once more whether the tenant is its own, and publishes none of them.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_relay_process_frozen_as_the_rows_of_its_claim_arrive_publishes_none_of_them(
    driver: Driver,
) {
    let server = Database::tcp_server();
    let stage = Stage::on(driver, server, "claiming").await;
    let first = stage.append("acme", 1).await;
    let mut process = Other::start(driver.place, &server.url(&stage.database.name), CLAIM);
    assert_eq!(process.says().await, format!("publishes {}", first[0]));
    assert_eq!(process.says().await, "is ready");
    let written = stage.append("acme", 5).await;
    writeln!(process.stdin, "look").unwrap();
    assert_eq!(process.says().await, "claims");
    // The claim takes the tenant, and its rows come when the table is unlocked.
    let mut locker = stage.database.admin.begin().await.unwrap();
    let lock = "LOCK TABLE outbox_message IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut *locker).await.unwrap();
    writeln!(process.stdin, "go on").unwrap();
    let waiting = "SELECT EXISTS (SELECT FROM pg_locks AS waiting
                       JOIN pg_locks AS held ON held.pid = waiting.pid AND held.locktype = 'advisory' AND held.granted
                       WHERE waiting.locktype = 'relation' AND NOT waiting.granted
                           AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    stage.database.wait_until(waiting).await;
    let asked = Instant::now();
    process.freeze();
    locker.rollback().await.unwrap();

    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    replica.journal.wait_for(2, |entry| *entry == Entry::Held).await;
    assert_eq!(stage.database.terminate_holders().await, 1);
    soon("this replica publishes", recorder.wait_for_accepted(5)).await;
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);

    // Real time: the freeze has to be longer than the second for which a proof of the claim counts.
    tokio::time::sleep(Duration::from_millis(1_100).saturating_sub(asked.elapsed())).await;
    process.signal(Signal::CONT);
    assert_eq!(process.says().await, "backs off", "it published without the tenant");
    replica.stop().await;
    drop(process);
    stage.end().await;
}
