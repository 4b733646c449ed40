//! The laws of publishers that take several messages at once, or have several on their way.

use std::future::poll_fn;
use std::task::Poll;

use outbox_core::{
    BatchOutcome, BatchPublisher, Delivery, MessageId, OrderedPublisher, OutboxMessage, RefusalClass,
};

use super::{PublisherTrial, accept, message};
use crate::{PublisherCapability, PublisherHarness};

/// Makes one `#[test]` of each law of a [`BatchPublisher`], beside those of
/// [`publisher_conformance!`](crate::publisher_conformance).
#[macro_export]
macro_rules! batch_publisher_conformance {
    ($(#[$attribute:meta])* $harness:ty) => {
        $crate::publisher_conformance! { @ [$(#[$attribute])*] [$harness]
            batch_is_in_order_and_acknowledged
            batch_is_repeat_safe
            batch_is_refused_while_the_receiver_is_down
        }
    };
}

/// Makes one `#[test]` of each law of an [`OrderedPublisher`], beside those of
/// [`publisher_conformance!`](crate::publisher_conformance).
#[macro_export]
macro_rules! ordered_publisher_conformance {
    ($(#[$attribute:meta])* $harness:ty) => {
        $crate::publisher_conformance! { @ [$(#[$attribute])*] [$harness]
            messages_arrive_in_the_order_of_their_first_polls
        }
    };
}

async fn publish_batch<P: BatchPublisher>(publisher: &P, messages: &[OutboxMessage]) -> BatchOutcome {
    let deliveries: Vec<_> = messages.iter().map(|message| Delivery::new("source", message)).collect();
    publisher.publish_batch(&deliveries).await
}

/// A slice arrives in its order, and what the publisher answers as accepted the receiver has: no more than was
/// given, and all of it where nothing was refused.
pub async fn batch_is_in_order_and_acknowledged<H>(trial: PublisherTrial<H>)
where
    H: PublisherHarness<Publisher: BatchPublisher>,
{
    let publisher = trial.harness.publisher().await;
    let mut sent = Vec::new();
    let mut next = 1;
    for rows in [1, 2, 50, 7] {
        let messages: Vec<_> = (next..next + rows).map(message).collect();
        next += rows;
        let length = messages.len();
        let outcome = publish_batch(&publisher, &messages).await;
        assert!(outcome.accepted() <= length, "{} of {length} messages are accepted", outcome.accepted());
        assert!(
            outcome.refusal().is_none() && outcome.accepted() == length,
            "a receiver that is up: {outcome:?}"
        );
        sent.extend(messages.iter().map(|message| message.id));
        assert_eq!(trial.ids().await, sent, "accepted, and the receiver has it not, or not in order");
    }
}

/// The same slice again is accepted again: a crash before the mark must not stop the tenant for ever.
pub async fn batch_is_repeat_safe<H>(trial: PublisherTrial<H>)
where
    H: PublisherHarness<Publisher: BatchPublisher>,
{
    let (first, second) = (trial.harness.publisher().await, trial.harness.publisher().await);
    let messages = [message(1), message(2), message(3)];
    for publisher in [&first, &first, &second] {
        assert_eq!(publish_batch(publisher, &messages).await.accepted(), 3, "the same slice again");
    }
    let last: Vec<_> = trial.ids().await.into_iter().rev().take(3).collect();
    assert_eq!(last, [3, 2, 1].map(MessageId::new));
}

/// While the receiver is down, nothing of a slice is accepted, and the refusal is *unavailable*.
pub async fn batch_is_refused_while_the_receiver_is_down<H>(trial: PublisherTrial<H>)
where
    H: PublisherHarness<Publisher: BatchPublisher>,
{
    let publisher = trial.harness.publisher().await;
    let down = trial.harness.set_down(true).await;
    if !trial.can(PublisherCapability::TakeDown, down) {
        return;
    }
    let outcome = publish_batch(&publisher, &[message(1), message(2)]).await;
    assert_eq!(outcome.accepted(), 0, "accepted by a receiver that is down");
    let class = outcome.refusal().map(outbox_core::PublishError::class);
    assert_eq!(class, Some(RefusalClass::Unavailable), "{outcome:?}");
    let _ = trial.harness.set_down(false).await;
}

/// Messages whose futures are polled once, one after the other, arrive in that order, whatever is polled later.
pub async fn messages_arrive_in_the_order_of_their_first_polls<H>(trial: PublisherTrial<H>)
where
    H: PublisherHarness<Publisher: OrderedPublisher>,
{
    use outbox_core::Publisher;
    let publisher = trial.harness.publisher().await;
    let messages: Vec<_> = (1..=30).map(message).collect();
    let deliveries: Vec<_> = messages.iter().map(|message| Delivery::new("source", message)).collect();
    let mut waiting = Vec::new();
    for delivery in &deliveries {
        let mut future = publisher.publish(delivery);
        match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
            Poll::Ready(answer) => accept(answer),
            Poll::Pending => waiting.push(future),
        }
    }
    // The last one first: none but the first poll may decide.
    while let Some(future) = waiting.pop() {
        accept(future.await);
    }
    assert_eq!(trial.ids().await, (1..=30).map(MessageId::new).collect::<Vec<_>>());
}
