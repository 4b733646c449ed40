//! Sessions that end under a claim: terminated ones, a server that restarts, a pool that retires connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_core::{OperationKind, SystemClock};
use outbox_testkit::{FaultyPublisher, ManualClock, PublishFault, Recorder, When};

use crate::server::{
    Driver, Entry, Gate, PrivateServer, Replica, SOON, ServerDatabase, Stage, quick, recorded, soon, started,
    tenant,
};

/// The holder's session is terminated while it publishes. The other replica takes over at once and publishes
/// everything; the holder, once a second has passed, emits nothing after the message that it was in.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_terminated_holder_emits_no_more_than_the_message_it_was_in_and_the_other_takes_over_at_once<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 5).await;
    let gate = Gate::at(written[1]);
    let all = Recorder::around(gate.clone());
    let (first, second) = (recorded(&all), recorded(&all));
    // The holder's second passes when this clock says so.
    let clock = ManualClock::new();
    let holder = Replica::start_with(&stage.store(3), first.clone(), quick(), |relay| {
        relay.clock(Arc::new(clock.clone()))
    });
    gate.entered().await;
    let other = Replica::start(&stage.store(3), second.clone(), quick());
    other.journal.wait_for(1, |entry| *entry == Entry::Held).await;
    assert!(started(&second).is_empty());

    assert_eq!(stage.database.terminate_holders().await, 1);
    let begin = Instant::now();
    soon("the other replica publishes", second.wait_for_accepted(5)).await;
    assert!(begin.elapsed() < SOON, "taken over after {:?}", begin.elapsed());
    stage.wait_until_published().await;
    assert_eq!(second.accepted(&tenant("acme")), written, "in order, what the holder had published too");

    clock.advance(Duration::from_secs(1));
    gate.open();
    holder.journal.wait_for(1, |entry| matches!(entry, Entry::BackedOff { .. })).await;
    assert_eq!(started(&first), written[..2], "the holder went on without its session");
    other.stop().await;
    drop(holder);
    stage.end().await;
}

/// A session is terminated, and within the second the holder goes on: nothing of its batch is marked, all of it
/// is published again, once, and nothing is lost.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn what_was_accepted_after_the_session_was_terminated_is_published_again_once<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 4).await;
    let gate = Gate::at(written[1]);
    let recorder = Recorder::around(gate.clone());
    // Its clock stands still meanwhile: the second does not pass on a slow machine either.
    let clock = ManualClock::new();
    let replica = Replica::start_with(&stage.store(3), recorder.clone(), quick(), |relay| {
        relay.clock(Arc::new(clock.clone()))
    });
    gate.entered().await;
    assert_eq!(stage.database.terminate_holders().await, 1);
    gate.open();
    replica.journal.wait_for_failed(OperationKind::Settle).await;
    assert_eq!(started(&recorder), written);
    assert_eq!(stage.pending().await, 4, "a session that is gone marked something");
    let wait = replica.journal.back_off(1).await;
    // A claim that finds the tenant held waits for the next poll, which a clock that stands still does not bring.
    stage.database.wait_until_nobody_holds().await;
    clock.advance(wait);
    replica.journal.wait_for(1, |entry| *entry == Entry::Settled(4)).await;
    assert_eq!(recorder.accepted(&tenant("acme")), [&written[..], &written[..]].concat());
    assert_eq!(stage.pending().await, 0);
    drop(replica);
    stage.end().await;
}

/// The server goes down in the middle of a batch and comes back, in good order or after a crash: the relay
/// recovers by itself, nothing is lost, and what is published again is that batch, in order.
async fn recovers_from<D: ServerDatabase>(
    driver: Driver<D>,
    name: &str,
    disturb: impl FnOnce(&mut D::Server) + Send,
) {
    let mut server = D::Server::start();
    let stage = Stage::on(driver, &server, name).await;
    let mut written = stage.append("acme", 6).await;
    let gate = Gate::at(written[2]);
    let recorder = Recorder::around(gate.clone());
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    gate.entered().await;
    disturb(&mut server);
    gate.open();
    replica.publishes_all_of(&stage).await;
    written.extend(stage.append("acme", 3).await);
    replica.publishes_all_of(&stage).await;

    recorder.assert_in_order();
    let mut accepted = recorder.accepted(&tenant("acme"));
    accepted.sort_unstable();
    accepted.dedup();
    assert_eq!(accepted, written, "nothing is lost");
    let duplicates = recorder.duplicates();
    assert!(duplicates.iter().all(|((_, id), times)| *id < written[6] && *times == 2), "{duplicates:?}");
    replica.health(outbox_core::HealthReport::is_healthy).await;
    replica.stop().await;
    stage.end().await;
}

/// A restart ends every session.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_server_restart_mid_batch_loses_nothing_and_the_relay_recovers_by_itself<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    recovers_from(driver, "restart", PrivateServer::restart).await;
}

/// A crash tells no session, and recovers from the log.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_server_crash_mid_batch_loses_nothing_and_the_relay_recovers_by_itself<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    recovers_from(driver, "crash", PrivateServer::crash_and_start).await;
}

/// A pool that retires connections sooner than a publish ends takes none away from a claim: no hand-over, no
/// duplicate.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_pool_that_retires_connections_takes_none_from_a_claim<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 4).await;
    let all = Recorder::new();
    let slow = |recorder: &Recorder| {
        let publisher = FaultyPublisher::new(recorder.clone(), Arc::new(SystemClock::new()));
        publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(150)));
        publisher
    };
    let replica = || {
        let retiring = driver.pool_that_retires(stage.options(), 3, Duration::from_millis(50));
        Replica::start(&retiring.store(stage.description()), slow(&all), quick())
    };
    let (first, second) = (replica(), replica());
    stage.wait_until_published().await;
    assert_eq!(all.accepted(&tenant("acme")), written);
    all.assert_no_duplicates();
    let failed = |entry: &Entry| matches!(entry, Entry::Failed(..));
    assert_eq!((first.journal.count(failed), second.journal.count(failed)), (0, 0));
    first.stop().await;
    second.stop().await;
    stage.end().await;
}
