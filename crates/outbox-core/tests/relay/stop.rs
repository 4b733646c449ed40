//! What a stop finishes, what it drops, and when it is over.

use std::time::Duration;

use outbox_core::{Clock, OperationKind, RelayError, RelayHandle, StoreOperation};
use outbox_testkit::{PublishFault, StoreFault, When};
use tokio::task::JoinHandle;

use crate::seen::{End, Told};
use crate::stage::{POLL, Stage, calm, config, tenant};

const HALF: Duration = Duration::from_millis(500);

/// Begins to stop, in a task of its own.
async fn stopping(running: RelayHandle) -> JoinHandle<Result<(), RelayError>> {
    let stopping = tokio::spawn(running.stop());
    calm().await;
    stopping
}

/// S47: the message in flight is finished and marked with what was accepted before it; no other is begun, and
/// nothing is claimed any more.
#[tokio::test]
async fn a_stop_finishes_the_message_in_flight_and_marks_it() {
    let stage = Stage::new();
    let ids = stage.write("a", 5);
    stage.publisher.fail(When::Every, PublishFault::Slow(HALF));
    let running = stage.relay().start().unwrap();
    stage.pass(HALF + POLL).await;
    let stopped = stopping(running).await;
    stage.write("b", 1);
    stage.pass(HALF - POLL - Duration::from_millis(1)).await;
    assert!(!stopped.is_finished(), "it still holds the tenant");
    stage.pass(Duration::from_millis(1)).await;
    assert!(stopped.is_finished());
    assert_eq!((stage.tried(), stage.marked("a")), (ids[..2].to_vec(), ids[..2].to_vec()));
    assert_eq!((stage.table.held(), stage.marked("b")), (vec![], vec![]));
    stage.pass(POLL * 10).await;
    assert_eq!(stage.store.started(StoreOperation::Claim), 1);
    assert_eq!(stage.seen.notices(), [Told::Started, Told::Stopped]);
}

/// Past the stop's deadline the publish is dropped: its row stays pending, the accepted prefix is marked, and a
/// peer has the tenant within a poll.
#[tokio::test]
async fn a_stops_deadline_drops_the_publish_and_marks_what_was_accepted() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.publisher.fail_times(1, When::Message(ids[1]), PublishFault::Hang);
    let running = stage.relay().start().unwrap();
    calm().await;
    let stopped = stopping(running).await;
    stage.pass(Duration::from_secs(10) - Duration::from_millis(1)).await;
    assert!(!stopped.is_finished());
    stage.pass(Duration::from_millis(1)).await;
    stopped.await.unwrap().unwrap();
    assert_eq!((stage.marked("a"), stage.table.held()), (ids[..1].to_vec(), vec![]));
    assert_eq!(stage.seen.ends(OperationKind::Publish).last(), Some(&End::Abandoned));
    let _peer = stage.relay().start().unwrap();
    stage.pass(POLL).await;
    assert!(stage.all_marked());
    stage.recorder.assert_in_order();
}

/// A relay that holds nothing stops without any time passing.
#[tokio::test]
async fn an_idle_relay_stops_at_once() {
    let stage = Stage::new();
    let running = stage.relay().start().unwrap();
    stage.pass(POLL * 3).await;
    let before = stage.clock.monotonic();
    running.stop().await.unwrap();
    assert_eq!(stage.clock.monotonic(), before);
}

/// A stop while the claim is under way waits for it and gives the tenant back; nothing is published.
#[tokio::test]
async fn a_stop_during_a_claim_publishes_nothing() {
    let stage = Stage::new();
    stage.write("a", 2);
    stage.store.fail_nth(1, StoreOperation::Claim, StoreFault::Slow(HALF));
    let running = stage.relay().start().unwrap();
    stage.pass(POLL).await;
    let stopped = stopping(running).await;
    stage.pass(HALF).await;
    assert!(stopped.is_finished());
    assert_eq!((stage.tried(), stage.table.held()), (vec![], vec![]));
}

/// A stop waits for a settlement, and for a store that does not answer until its deadline.
#[tokio::test]
async fn a_stop_waits_for_the_store_as_long_as_the_store_has() {
    // The store's deadline, and the quarter of a second after it for what the store says then.
    let deadline = Duration::from_millis(30_250);
    for (operation, fault, bound) in [
        (StoreOperation::Settle, StoreFault::Slow(Duration::from_secs(20)), Duration::from_secs(20)),
        (StoreOperation::Settle, StoreFault::Hang, deadline),
        (StoreOperation::Claim, StoreFault::Hang, deadline),
        (StoreOperation::Probe, StoreFault::Hang, deadline),
    ] {
        let stage = Stage::new();
        stage.write("a", 1);
        stage.store.fail_nth(1, operation, fault.clone());
        let running = stage.relay().start().unwrap();
        calm().await;
        let stopped = stopping(running).await;
        stage.pass(bound - Duration::from_millis(1)).await;
        assert!(!stopped.is_finished(), "{operation} {fault:?}");
        stage.pass(Duration::from_millis(1)).await;
        assert!(stopped.is_finished(), "{operation} {fault:?}");
        assert_eq!(stage.store.dropped(), []);
    }
}

/// A stopped relay starts again, and two runs of one relay take turns as replicas do.
#[tokio::test]
async fn a_relay_starts_again_and_twice_at_once() {
    let stage = Stage::new();
    let relay = stage.relay();
    for _ in 0..5 {
        stage.write("a", 40);
        let running = relay.start().unwrap();
        stage.until(|| stage.all_marked()).await;
        running.stop().await.unwrap();
    }
    let twice = [relay.start().unwrap(), relay.start().unwrap()];
    for name in ["a", "b", "c"] {
        stage.write(name, 500);
    }
    stage.until(|| stage.all_marked()).await;
    for running in twice {
        running.stop().await.unwrap();
    }
    stage.recorder.assert_in_order();
    stage.recorder.assert_no_duplicates();
}

/// The handle dropped, or the `run` future: the same stop, in the background.
#[tokio::test]
async fn a_dropped_handle_and_a_dropped_run_stop_by_themselves() {
    for run in [false, true] {
        let stage = Stage::new();
        let ids = stage.write("a", 3);
        stage.publisher.fail(When::Every, PublishFault::Slow(HALF));
        let relay = stage.relay();
        if run {
            let running = tokio::spawn(async move { relay.run(std::future::pending()).await });
            stage.pass(POLL).await;
            running.abort();
        } else {
            let running = relay.start().unwrap();
            stage.pass(POLL).await;
            drop(running);
        }
        stage.pass(HALF * 4).await;
        assert_eq!((stage.tried(), stage.marked("a")), (ids[..1].to_vec(), ids[..1].to_vec()));
        assert_eq!(stage.table.held(), []);
        assert_eq!(stage.seen.notices().last(), Some(&Told::Stopped));
        assert_eq!(stage.clock.sleepers(), 0, "nobody is left");
    }
}

/// S46: a dropped handle ends a publish that never would, at the stop's deadline.
#[tokio::test]
async fn a_dropped_handle_ends_a_hanging_publish_at_the_stops_deadline() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Every, PublishFault::Hang);
    drop(stage.relay().start().unwrap());
    let running = stage.relay().start().unwrap();
    calm().await;
    drop(running);
    stage.pass(Duration::from_secs(10)).await;
    assert_eq!((stage.table.held(), stage.clock.sleepers()), (vec![], 0));
}

/// `run` ends with its shutdown future, after what is in flight.
#[tokio::test]
async fn run_stops_when_its_shutdown_future_ends() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.publisher.fail(When::Every, PublishFault::Slow(HALF));
    let (relay, shutdown) = (stage.relay(), stage.clock.sleep(HALF + POLL));
    let run = tokio::spawn(async move { relay.run(shutdown).await });
    stage.pass(HALF * 2).await;
    assert!(run.is_finished());
    assert_eq!(stage.marked("a"), ids[..2]);
    run.await.unwrap().unwrap();
}

/// A relay that winds down does not spin, and begins nothing when a tenant comes back full.
#[tokio::test]
async fn a_relay_that_stops_begins_nothing_new() {
    let stage = Stage::new();
    stage.write("a", 100);
    stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(10)));
    let running = stage.relay_with(config().max_batch(2)).start().unwrap();
    stage.pass(Duration::from_millis(35)).await;
    let stopped = stopping(running).await;
    stage.pass(Duration::from_secs(10)).await;
    assert!(stopped.is_finished());
    assert_eq!(stage.marked("a").len(), 4);
    assert_eq!(stage.broker.accepted(&tenant("a")), stage.marked("a"));
}
