//! The kit's own parts: the clock, the recorder and the faults.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    ClaimOutcome, ClaimRequest, Clock, Delivery, Headers, MessageId, NewMessage, OutboxMessage, ProbeRequest,
    Publisher, RefusalClass, Settlement, Store, StoreOperation, TenantId, Tenants, Timestamp,
};
use outbox_memory::MemoryStore;
use outbox_testkit::{
    FaultyPublisher, FaultyStore, ManualClock, PublishFault, Recorder, StoreFault, Violation, When,
};

fn tenant(id: &str) -> TenantId {
    TenantId::new(id).expect("a valid tenant id")
}

fn message(tenant_id: &str, id: i64) -> OutboxMessage {
    let at = Timestamp::from_micros(0);
    OutboxMessage::new(MessageId::new(id), tenant(tenant_id), "kind", "subject", None, Headers::new(), at)
}

async fn publish(publisher: &impl Publisher, message: &OutboxMessage) -> bool {
    publisher.publish(&Delivery::new("source", message)).await.is_ok()
}

/// Who sleeps wakes when the clock has gone on by the duration, not before, and in the order of the ends.
#[tokio::test]
async fn a_manual_clock_wakes_who_has_slept_enough() {
    let clock = ManualClock::new();
    let start = clock.now();
    let sleeps = [30, 10, 20].map(|seconds| tokio::spawn(clock.sleep(Duration::from_secs(seconds))));
    clock.wait_for_sleepers(3).await;
    clock.advance(Duration::from_secs(9));
    tokio::task::yield_now().await;
    assert!(sleeps.iter().all(|sleep| !sleep.is_finished()));
    assert_eq!(clock.advance_to_next_sleeper().await, Duration::from_secs(1));
    let [thirty, ten, twenty] = sleeps;
    ten.await.expect("it woke");
    assert_eq!(clock.sleepers(), 2);
    twenty.abort();
    assert!(twenty.await.is_err());
    assert_eq!(clock.sleepers(), 1, "a dropped sleep is no sleeper");
    clock.advance(Duration::from_secs(20));
    thirty.await.expect("it woke");
    assert_eq!(start.until(clock.now()), Duration::from_secs(30));
    assert_eq!(clock.monotonic(), Duration::from_secs(30));
    clock.sleep(Duration::ZERO).await;
}

/// A new date moves nobody's sleep.
#[tokio::test]
async fn a_new_date_wakes_nobody() {
    let clock = ManualClock::new();
    let sleep = tokio::spawn(clock.sleep(Duration::from_secs(1)));
    clock.wait_for_sleepers(1).await;
    clock.set_date(Timestamp::from_micros(i64::MAX));
    tokio::task::yield_now().await;
    assert!(!sleep.is_finished());
    assert_eq!(clock.now(), Timestamp::from_micros(i64::MAX));
}

/// The recorder tells an overtaken message from a repeated one, and tenants apart.
#[tokio::test]
async fn the_recorder_judges_the_order() {
    let recorder = Recorder::new();
    for (tenant, id) in [("a", 1), ("b", 5), ("a", 2), ("b", 6), ("a", 1), ("a", 2), ("a", 3)] {
        assert!(publish(&recorder.clone(), &message(tenant, id)).await);
    }
    recorder.assert_in_order();
    let repeated = [(tenant("a"), MessageId::new(1)), (tenant("a"), MessageId::new(2))];
    assert_eq!(recorder.duplicates().into_keys().collect::<Vec<_>>(), repeated);
    publish(&recorder, &message("b", 4)).await;
    let overtaken =
        Violation::Overtaken { tenant_id: tenant("b"), late: MessageId::new(4), higher: MessageId::new(6) };
    assert_eq!(recorder.violations(), [overtaken]);
    assert_eq!(recorder.accepted(&tenant("b")), [5, 6, 4].map(MessageId::new));
}

/// The recorder sees two publishes of one tenant at once, also by two relays, and not those of two tenants.
#[tokio::test]
async fn the_recorder_sees_an_overlap() {
    let clock = ManualClock::new();
    let faulty = FaultyPublisher::new(Recorder::new(), Arc::new(clock.clone()));
    faulty.fail(When::Every, PublishFault::Slow(Duration::from_secs(1)));
    let recorder = Recorder::around(faulty);
    let publish_later = |tenant: &'static str, id| {
        let recorder = recorder.clone();
        tokio::spawn(async move { publish(&recorder, &message(tenant, id)).await })
    };
    let mut tasks = vec![publish_later("a", 1), publish_later("b", 2)];
    clock.wait_for_sleepers(2).await;
    recorder.assert_in_order();
    tasks.push(publish_later("a", 3));
    clock.wait_for_sleepers(3).await;
    let (running, started) = (MessageId::new(1), MessageId::new(3));
    assert_eq!(recorder.violations(), [Violation::Overlap { tenant_id: tenant("a"), running, started }]);
    clock.advance(Duration::from_secs(1));
    recorder.wait_for_accepted(3).await;
    for task in tasks {
        assert!(task.await.expect("no panic"));
    }
}

/// Each fault of a publisher does what it says, for the publishes that it is for.
#[tokio::test]
async fn a_faulty_publisher_keeps_to_its_script() {
    let recorder = Recorder::new();
    let faulty = FaultyPublisher::new(recorder.clone(), Arc::new(ManualClock::new()));
    faulty.fail(When::Nth(2), PublishFault::Refuse(RefusalClass::Rejected));
    faulty.fail_times(1, When::Message(MessageId::new(7)), PublishFault::LoseAcknowledgement);
    faulty.fail(When::Tenant(tenant("panics")), PublishFault::PanicInPoll);
    faulty.fail(When::Tenant(tenant("eager")), PublishFault::PanicEagerly);
    faulty.fail(When::Tenant(tenant("drop")), PublishFault::PanicInDrop);
    assert!(publish(&faulty, &message("a", 1)).await);
    let refused = faulty.publish(&Delivery::new("source", &message("a", 2))).await.expect_err("the second");
    assert_eq!(refused.class(), RefusalClass::Rejected);
    assert!(!publish(&faulty, &message("a", 7)).await);
    assert!(publish(&faulty, &message("a", 7)).await);
    assert_eq!(
        recorder.accepted(&tenant("a")),
        [1, 7, 7].map(MessageId::new),
        "the receiver got the lost one"
    );
    for panics in ["panics", "eager", "drop"] {
        let faulty = faulty.clone();
        let task = tokio::spawn(async move { publish(&faulty, &message(panics, 1)).await });
        assert!(task.await.expect_err(panics).is_panic());
    }
    assert_eq!(recorder.accepted(&tenant("drop")).len(), 1);
    faulty.heal();
    assert!(publish(&faulty, &message("panics", 2)).await);
    assert_eq!(faulty.calls(), 8);
}

/// Each fault of a store does what it says, and futures that were dropped are told.
#[tokio::test]
async fn a_faulty_store_keeps_to_its_script() {
    let (memory, clock) = (MemoryStore::new(), ManualClock::new());
    let store = FaultyStore::new(memory.clone(), Arc::new(clock.clone()));
    let acme = tenant("acme");
    let id = memory.append(NewMessage::tombstone(acme.clone(), "kind", "subject"));
    let request = ClaimRequest::new(acme.clone(), std::num::NonZeroU32::MIN);
    store.fail_nth(1, StoreOperation::Claim, StoreFault::Fail);
    store.fail_nth(1, StoreOperation::Settle, StoreFault::LoseAnswer);
    assert!(store.claim(&request).await.is_err());
    let Ok(ClaimOutcome::Claimed(claimed)) = store.claim(&request).await else {
        panic!("the second is fine")
    };
    assert!(claimed.claim.settle(Settlement::published([id])).await.is_err());
    assert_eq!(memory.published().len(), 1, "it was marked, and the answer was lost");
    assert!(store.dropped().is_empty());

    store.fail(StoreOperation::Claim, StoreFault::Hang);
    let hangs = tokio::time::timeout(Duration::from_millis(1), store.claim(&request)).await;
    assert!(hangs.is_err());
    assert_eq!(store.dropped(), [StoreOperation::Claim]);
    assert_eq!(store.started(StoreOperation::Claim), 3);
    store.heal();

    store.fail(StoreOperation::Probe, StoreFault::Slow(Duration::from_secs(1)));
    let slow = store.clone();
    let all = ProbeRequest::new(Tenants::Discovered);
    let task = tokio::spawn(async move { slow.probe(&all).await });
    clock.wait_for_sleepers(1).await;
    clock.advance(Duration::from_secs(1));
    assert!(task.await.expect("no panic").is_ok());
    store.heal();

    store.fail(StoreOperation::Probe, StoreFault::Panic);
    let panics = tokio::spawn(async move {
        let request = ProbeRequest::new(Tenants::Discovered);
        store.probe(&request).await
    });
    assert!(panics.await.expect_err("it panics").is_panic());
}
