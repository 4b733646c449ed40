//! Waking the relay: at once after a commit, never lost, never too much.

use std::time::Duration;

use outbox_core::{RefusalClass, StoreOperation};
use outbox_testkit::{PublishFault, StoreFault, When};

use crate::stage::{POLL, Stage, calm, message};

const MOMENT: Duration = Duration::from_millis(10);

/// A wake after a commit publishes without any time passing; one after a rollback publishes nothing.
#[tokio::test]
async fn a_wake_publishes_without_waiting_for_the_poll() {
    let stage = Stage::new();
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    calm().await;
    let mut transaction = stage.table.begin();
    transaction.append(message("a"));
    relay.wake();
    calm().await;
    assert_eq!(stage.tried(), [], "not before the commit");
    transaction.commit();
    relay.wake();
    calm().await;
    assert!(stage.all_marked());
}

/// A waker is as good as the relay itself, from another task too, and harmless when the relay is gone.
#[tokio::test]
async fn a_waker_wakes_its_relay() {
    let stage = Stage::new();
    let relay = stage.relay();
    let waker = relay.waker();
    let running = relay.start().unwrap();
    calm().await;
    stage.table.append(message("a"));
    let woken = waker.clone();
    tokio::spawn(async move { woken.wake() }).await.unwrap();
    calm().await;
    assert!(stage.all_marked());
    running.stop().await.unwrap();
    drop(relay);
    waker.wake();
}

/// Wakes that come close together are one probe; none of them stops the poll.
#[tokio::test]
async fn wakes_are_coalesced() {
    let stage = Stage::new();
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    calm().await;
    let before = stage.store.started(StoreOperation::Probe);
    for _ in 0..1_000 {
        relay.wake();
    }
    calm().await;
    assert_eq!(stage.store.started(StoreOperation::Probe), before + 1);
    stage.pass(POLL * 5).await;
    assert_eq!(stage.store.started(StoreOperation::Probe), before + 6);
}

/// A wake during a probe is kept: what was committed after the probe had looked is found by the next one.
#[tokio::test]
async fn a_wake_during_a_probe_is_kept() {
    let stage = Stage::new();
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    calm().await;
    // The probe reads when its delay is over, the answer is taken in the next step: the wake comes between.
    stage.store.fail_nth(2, StoreOperation::Probe, StoreFault::Slow(MOMENT));
    relay.wake();
    stage.pass(MOMENT / 2).await;
    relay.wake();
    stage.pass(MOMENT / 2).await;
    assert_eq!(stage.store.started(StoreOperation::Probe), 3, "one more probe after the one under way");
}

/// A wake during a sweep is kept: what was committed after the claim had read goes out right behind it.
#[tokio::test]
async fn a_wake_during_a_sweep_is_kept() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail_times(1, When::Every, PublishFault::Slow(MOMENT));
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    stage.pass(MOMENT / 2).await;
    stage.write("a", 1);
    relay.wake();
    stage.pass(MOMENT / 2).await;
    assert!(stage.all_marked(), "it waits for the poll");
}

/// A wake before the start is no wake less: the first probe is made at once.
#[tokio::test]
async fn the_first_probe_is_made_at_once() {
    let stage = Stage::new();
    stage.write("a", 1);
    let relay = stage.relay();
    relay.wake();
    let _running = relay.start().unwrap();
    calm().await;
    assert!(stage.all_marked());
}

/// A wake cuts no tenant's back-off, and not the one of failed probes.
#[tokio::test]
async fn a_wake_cuts_no_back_off() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Refused));
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    stage.until(|| stage.tried().len() == 5).await;
    for _ in 0..50 {
        relay.wake();
        calm().await;
    }
    assert_eq!(stage.tried().len(), 5);

    stage.store.fail(StoreOperation::Probe, StoreFault::Fail);
    relay.wake();
    calm().await;
    let probes = stage.store.started(StoreOperation::Probe);
    for _ in 0..50 {
        relay.wake();
        calm().await;
    }
    assert_eq!(stage.store.started(StoreOperation::Probe), probes);
}

/// Every run of a relay is waked.
#[tokio::test]
async fn every_run_is_waked() {
    let stage = Stage::new();
    let relay = stage.relay();
    let _runs = [relay.start().unwrap(), relay.start().unwrap()];
    calm().await;
    let before = stage.store.started(StoreOperation::Probe);
    relay.wake();
    calm().await;
    assert_eq!(stage.store.started(StoreOperation::Probe), before + 2);
}
