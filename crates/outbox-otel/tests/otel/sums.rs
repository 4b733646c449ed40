//! What is counted adds up with the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outbox_core::{
    Accepted, Delivery, MessageId, OrderedPublisher, PublishError, Publisher, Publishing, RefusalClass,
    async_trait,
};
use outbox_memory::MemoryStore;
use outbox_otel::{MetricsObserver, names};
use outbox_testkit::{FaultyPublisher, PublishFault, Recorder, When};

use crate::support::{Meters, Outbox, Point, tenant, whole};

/// Accepts, and ends every database session while it does so for one message, once.
struct LosesSession {
    inner: Recorder,
    store: MemoryStore,
    at: MessageId,
    lost: AtomicBool,
}

#[async_trait]
impl Publisher for LosesSession {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        if delivery.message.id == self.at && !self.lost.swap(true, Ordering::Relaxed) {
            self.store.kill_sessions();
        }
        self.inner.publish(delivery).await
    }
}

/// After refusals, panics, deadlines, lost acknowledgements, a lost session and a publish that a stop
/// cancelled: every attempt ended as exactly one of accepted, refused or lost, as the publisher saw it; what
/// is marked in the table was counted; and nothing is under way, nor ever was fewer than nothing.
#[tokio::test]
async fn attempts_are_published_refused_or_lost() {
    let (outbox, meters) = (Outbox::new(), Meters::new());
    let clock = Arc::new(outbox.clock.clone());
    for of in ["well", "refused", "panics", "hangs", "unheard"] {
        outbox.append(of, 40);
    }
    let session = outbox.store.append_all((0..40).map(|n| crate::support::order("session", n)));
    let recorder = Recorder::new();
    let loses = LosesSession {
        inner: recorder.clone(),
        store: outbox.store.clone(),
        at: session[10],
        lost: AtomicBool::new(false),
    };
    let publisher = FaultyPublisher::new(loses, clock.clone());
    let fail = |times, of, fault| publisher.fail_times(times, When::Tenant(tenant(of)), fault);
    fail(3, "refused", PublishFault::Refuse(RefusalClass::Refused));
    fail(2, "refused", PublishFault::Refuse(RefusalClass::Unavailable));
    fail(1, "refused", PublishFault::Refuse(RefusalClass::Rejected));
    fail(2, "panics", PublishFault::PanicInPoll);
    fail(1, "panics", PublishFault::PanicEagerly);
    fail(2, "hangs", PublishFault::Hang);
    fail(2, "unheard", PublishFault::LoseAcknowledgement);

    let observer = MetricsObserver::new(&meters.meter()).with_clock(clock);
    let relay = outbox.relay(publisher.clone()).observer(observer).build().expect("valid");
    let handle = relay.start().expect("there is a runtime");
    let mut looks = 0;
    outbox
        .run_until(|| {
            looks += 1;
            if looks % 97 == 0 {
                assert_none_negative(&meters.collect());
            }
            outbox.store.unpublished().is_empty()
        })
        .await;
    // And one that a stop's deadline drops.
    publisher.fail(When::Tenant(tenant("dropped")), PublishFault::Hang);
    outbox.append("dropped", 1);
    outbox.run_until(|| meters.total(names::PUBLISH_ACTIVE, &[]) > 0.5).await;
    let stopped = tokio::spawn(handle.stop());
    outbox.run_until(|| stopped.is_finished()).await;

    let points = meters.collect();
    assert_none_negative(&points);
    let sum = |name: &str, failed: Option<&str>| -> u64 {
        let series = points.iter().filter(|point| point.name == name);
        let series = series
            .filter(|point| point.attributes.get(names::ERROR_TYPE).map(String::as_str) == failed)
            .map(|point| if point.count > 0 { point.count } else { whole(point.value) });
        series.sum()
    };
    let sent = |failed| sum(names::SENT_MESSAGES, failed);
    let failures: u64 = names::ERROR_TYPES.iter().map(|(failed, _)| sent(Some(failed))).sum();
    let attempts = sum(names::PUBLISH_ATTEMPTS, None);
    assert_eq!(attempts, u64::from(publisher.calls()));
    assert_eq!(attempts, sent(None) + failures, "published + refused + lost = attempts");
    let failed = ["refused", "unavailable", "rejected", "panic", "timeout", "lost"].map(|f| sent(Some(f)));
    assert_eq!(failed, [3, 2 + 2, 1, 3, 2, 1], "lost acknowledgements are unavailable");

    let accepted =
        recorder.deliveries().iter().filter(|delivery| delivery.accepted == Some(true)).count() as u64;
    assert_eq!(sent(None), accepted - 2, "the relay heard all but the two lost acknowledgements");
    let marked = outbox.store.published().len() as u64;
    assert_eq!(sum(names::SETTLED_MESSAGES, None), marked);
    let again: usize = recorder.duplicates().values().map(|times| times - 1).sum();
    assert!(again > 0, "the lost session published something again");
    assert_eq!(sent(None), marked + again as u64 - 2, "accepted = marked + published again");
    assert_eq!(sent(None), marked + sum(names::UNSETTLED_MESSAGES, None), "accepted = marked + unmarked");
    assert_eq!(sum(names::DELIVERY_DELAY, None), sent(None));
    assert_eq!(sum(names::OPERATION_DURATION, None), sent(None));
    assert_eq!(sum(names::PUBLISH_ACTIVE, None), 0);
    assert!(sum(names::CLAIMED_MESSAGES, None) >= attempts, "nothing is published unclaimed");
    assert_eq!(outbox.store.unpublished().len(), 1, "what was dropped is pending");
}

/// It declares its order; nothing here looks at it.
struct Ordered(FaultyPublisher);

#[async_trait]
impl Publisher for Ordered {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.0.publish(delivery).await
    }
}

impl OrderedPublisher for Ordered {}

/// Where messages are pipelined, what was accepted behind a failure is not marked and comes again, and what was
/// accepted before a verification that failed: both are counted.
#[tokio::test]
async fn what_is_accepted_behind_a_failure_is_unsettled() {
    for loses_session in [false, true] {
        let (outbox, meters) = (Outbox::new(), Meters::new());
        let ids = outbox.store.append_all((0..40).map(|n| crate::support::order("acme", n)));
        let clock = Arc::new(outbox.clock.clone());
        let recorder = Recorder::new().unordered();
        let publisher = FaultyPublisher::new(recorder.clone(), clock.clone());
        if !loses_session {
            publisher.fail_times(1, When::Message(ids[1]), PublishFault::Hang);
        }
        publisher.fail_times(9, When::Every, PublishFault::Slow(Duration::from_millis(600)));
        let publishing = Publishing::pipelined(Ordered(publisher), 4);
        let observer = MetricsObserver::new(&meters.meter()).with_clock(clock);
        let relay = outbox.relay_of(outbox.store.clone(), publishing).observer(observer);
        let handle = relay.build().expect("valid").start().expect("there is a runtime");
        if loses_session {
            outbox.run_until(|| recorder.deliveries().len() >= 3).await;
            outbox.store.kill_sessions();
        }
        outbox.run_until(|| outbox.store.unpublished().is_empty()).await;
        let stopped = tokio::spawn(handle.stop());
        outbox.run_until(|| stopped.is_finished()).await;
        let accepted = recorder.accepted(&tenant("acme")).len();
        assert!(accepted > ids.len(), "something came twice");
        let total = |name| whole(meters.total(name, &[]));
        assert_eq!(total(names::SETTLED_MESSAGES), ids.len() as u64);
        let unsettled = total(names::UNSETTLED_MESSAGES);
        assert_eq!(unsettled, (accepted - ids.len()) as u64, "accepted = settled + unsettled");
    }
}

fn assert_none_negative(points: &[Point]) {
    let negative = points.iter().find(|point| point.value < 0.0);
    assert!(negative.is_none(), "{negative:?}");
}
