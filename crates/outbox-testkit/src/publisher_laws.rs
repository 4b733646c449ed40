//! The laws of a publisher, and how they are run.

mod faster;

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Accepted, Delivery, Headers, MessageId, OutboxMessage, Payload, Publisher, RefusalClass, Timestamp,
};

use crate::capability::answered;
use crate::conformance::{number_from_env, on_a_runtime};
use crate::cut::Cut;
use crate::trial::{chain, joined, tenant};
use crate::{PublisherCapability, PublisherHarness, Received};

pub use self::faster::{
    batch_is_in_order_and_acknowledged, batch_is_refused_while_the_receiver_is_down, batch_is_repeat_safe,
    messages_arrive_in_the_order_of_their_first_polls,
};

/// Makes one `#[test]` of each law of a publisher, named as the law, for a [`PublisherHarness`].
///
/// Attributes before the type are put on every test. Two harnesses in one file go into a module each.
#[macro_export]
macro_rules! publisher_conformance {
    ($(#[$attribute:meta])* $harness:ty) => {
        $crate::publisher_conformance! { @ [$(#[$attribute])*] [$harness]
            accepted_means_acknowledged
            nothing_is_accepted_before_it_is_acknowledged
            publish_carries_the_whole_message
            publish_is_repeat_safe
            publish_is_cancel_safe
            publish_keeps_the_order
            publish_works_for_many_tenants_at_once
            publish_refuses_while_the_receiver_is_down
        }
    };
    (@ $attributes:tt $harness:tt $($law:ident)+) => {
        $($crate::publisher_conformance! { @test $attributes $harness $law })+
    };
    (@test [$($attributes:tt)*] [$harness:ty] $law:ident) => {
        #[test]
        $($attributes)*
        fn $law() {
            $crate::publisher_laws::run(stringify!($law), $crate::publisher_laws::$law::<$harness>);
        }
    };
}

/// A law of a publisher on trial, with a receiver of its own.
#[derive(Debug)]
pub struct PublisherTrial<H> {
    law: &'static str,
    harness: Arc<H>,
}

impl<H> Clone for PublisherTrial<H> {
    fn clone(&self) -> Self {
        Self { law: self.law, harness: Arc::clone(&self.harness) }
    }
}

/// Puts a law on trial, with a fresh receiver, on a runtime of its own.
///
/// # Panics
/// If the law is broken, or is not through within a minute.
pub fn run<H, F, L>(law: &'static str, put_on_trial: L)
where
    H: PublisherHarness,
    F: Future<Output = ()> + Send + 'static,
    L: FnOnce(PublisherTrial<H>) -> F + Send + 'static,
{
    on_a_runtime(law, Duration::from_secs(60), async move {
        let trial = PublisherTrial { law, harness: Arc::new(H::open().await) };
        let verdict = tokio::spawn(put_on_trial(trial.clone())).await;
        if let Some(harness) = Arc::into_inner(trial.harness) {
            harness.close().await;
        }
        joined(verdict);
    });
}

impl<H: PublisherHarness> PublisherTrial<H> {
    fn can(&self, capability: PublisherCapability, answer: Result<(), crate::Unsupported>) -> bool {
        answered(H::name(), self.law, &capability, H::CANNOT.contains(&capability), answer).is_some()
    }

    async fn ids(&self) -> Vec<MessageId> {
        self.harness.received().await.into_iter().map(|received| received.id).collect()
    }
}

/// Accepted means acknowledged: when the publisher answers so, the receiver has the message.
pub async fn accepted_means_acknowledged<H: PublisherHarness>(trial: PublisherTrial<H>) {
    let publisher = trial.harness.publisher().await;
    for id in 1..=10 {
        publish(&publisher, &message(id)).await;
        let received = trial.ids().await;
        assert_eq!(received.last(), Some(&MessageId::new(id)), "accepted, and the receiver has it not");
    }
}

/// While the receiver holds the acknowledgement back, the publisher does not answer that it was accepted.
pub async fn nothing_is_accepted_before_it_is_acknowledged<H: PublisherHarness>(trial: PublisherTrial<H>) {
    let publisher = trial.harness.publisher().await;
    publish(&publisher, &message(1)).await;
    let held = trial.harness.hold_acknowledgements(true).await;
    if !trial.can(PublisherCapability::HoldAcknowledgements, held) {
        return;
    }
    let task = tokio::spawn(async move {
        let answer = publisher.publish(&Delivery::new("source", &message(2))).await;
        (publisher, answer.is_ok())
    });
    while !trial.ids().await.contains(&MessageId::new(2)) && !task.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Time for a hasty publisher to answer in. An honest one may give up meanwhile, but not accept.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let hasty = task.is_finished();
    let _ = trial.harness.hold_acknowledgements(false).await;
    let (publisher, accepted) = joined(task.await);
    assert!(!(hasty && accepted), "accepted before the receiver acknowledged it");
    publish(&publisher, &message(3)).await;
}

/// The receiver gets the source, the id, the payload and the headers of the delivery, as they are; a
/// tombstone stays one.
pub async fn publish_carries_the_whole_message<H: PublisherHarness>(trial: PublisherTrial<H>) {
    let publisher = trial.harness.publisher().await;
    let all_bytes: Vec<u8> = (0..=u8::MAX).collect();
    let mut messages = [message(1), message((1 << 53) + 1), message(i64::MAX - 1)];
    messages[0].payload = Some(all_bytes.into());
    messages[1].payload = None;
    messages[2].payload = Some(Payload::from(""));
    let headers: Headers =
        [("traceparent", "00-1-2-01"), ("note", "text, with \"quotes\"")].into_iter().collect();
    let mut expected = Vec::new();
    for message in &messages {
        let delivery = Delivery::new("the.source", message).with_headers(&headers);
        accept(publisher.publish(&delivery).await);
        expected.push(Received::new("the.source", message.id, message.payload.clone(), headers.clone()));
    }
    assert_eq!(trial.harness.received().await, expected);
}

/// The same delivery again is accepted again: a crash before the mark must not stop the tenant for ever.
pub async fn publish_is_repeat_safe<H: PublisherHarness>(trial: PublisherTrial<H>) {
    let (first, second) = (trial.harness.publisher().await, trial.harness.publisher().await);
    for publisher in [&first, &first, &second] {
        publish(publisher, &message(1)).await;
    }
    publish(&second, &message(2)).await;
    let mut received = trial.ids().await;
    received.dedup();
    assert_eq!(received, [1, 2].map(MessageId::new), "the receiver has each, once or more often");
}

/// A publish that is dropped at any await leaves a publisher that works: the next one is accepted, and
/// received.
pub async fn publish_is_cancel_safe<H: PublisherHarness>(trial: PublisherTrial<H>) {
    let publisher = trial.harness.publisher().await;
    let mut cut = Cut::new();
    let rounds = number_from_env("OUTBOX_TEST_CANCELLATIONS").unwrap_or(H::CANCELLATIONS);
    for id in 1..=i64::from(rounds) {
        let message = message(id);
        let ended = cut.cut(publisher.publish(&Delivery::new("source", &message))).await;
        if let Some(answer) = ended {
            accept(answer);
        }
        publish(&publisher, &message).await;
        assert!(trial.ids().await.contains(&message.id), "message {id} was accepted after a dropped publish");
    }
}

/// Messages that are published one after the other arrive in that order.
pub async fn publish_keeps_the_order<H: PublisherHarness>(trial: PublisherTrial<H>) {
    let publisher = trial.harness.publisher().await;
    for id in 1..=50 {
        publish(&publisher, &message(id)).await;
    }
    assert_eq!(trial.ids().await, (1..=50).map(MessageId::new).collect::<Vec<_>>());
}

/// Messages of many tenants are published at once; each arrives.
pub async fn publish_works_for_many_tenants_at_once<H: PublisherHarness>(trial: PublisherTrial<H>) {
    let publisher = Arc::new(trial.harness.publisher().await);
    let tasks: Vec<_> = (1..=20)
        .map(|id| {
            let publisher = Arc::clone(&publisher);
            tokio::spawn(async move {
                let mut message = message(id);
                message.tenant_id = tenant(&format!("tenant-{id}"));
                publish(&*publisher, &message).await;
            })
        })
        .collect();
    for task in tasks {
        joined(task.await);
    }
    let mut received = trial.ids().await;
    received.sort_unstable();
    assert_eq!(received, (1..=20).map(MessageId::new).collect::<Vec<_>>());
}

/// While the receiver is down, a publish is refused as *unavailable*; it does not panic, and it is not
/// accepted. When the receiver is back, the same publisher works again.
pub async fn publish_refuses_while_the_receiver_is_down<H: PublisherHarness>(trial: PublisherTrial<H>) {
    let publisher = trial.harness.publisher().await;
    publish(&publisher, &message(1)).await;
    let down = trial.harness.set_down(true).await;
    if !trial.can(PublisherCapability::TakeDown, down) {
        return;
    }
    for _ in 0..3 {
        match publisher.publish(&Delivery::new("source", &message(2))).await {
            Err(error) => assert_eq!(error.class(), RefusalClass::Unavailable, "{}", chain(&error)),
            Ok(Accepted) => panic!("accepted by a receiver that is down"),
        }
    }
    let _ = trial.harness.set_down(false).await;
    let message = message(2);
    while publisher.publish(&Delivery::new("source", &message)).await.is_err() {
        // Reconnecting may take its time; the deadline of the law bounds it.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(trial.ids().await.contains(&message.id));
}

fn message(id: i64) -> OutboxMessage {
    let payload = Some(Payload::from(format!("payload {id}")));
    let occurred_at = Timestamp::from_micros(1_700_000_000_000_000 + id % 1_000);
    OutboxMessage::new(
        MessageId::new(id),
        tenant("acme"),
        "kind",
        "subject",
        payload,
        Headers::new(),
        occurred_at,
    )
}

async fn publish(publisher: &impl Publisher, message: &OutboxMessage) {
    accept(publisher.publish(&Delivery::new("source", message)).await);
}

fn accept(answer: Result<Accepted, outbox_core::PublishError>) {
    if let Err(error) = answer {
        panic!("a publish was refused: {}", chain(&error));
    }
}
