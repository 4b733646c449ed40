//! The laws of batch and of ordered publishers: an honest one keeps them, and each broken one breaks its law.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use outbox_core::{
    Accepted, BatchOutcome, BatchPublisher, Delivery, OrderedPublisher, PublishError, Publisher, async_trait,
};
use outbox_testkit::publisher_laws::{self as laws, PublisherTrial};
use outbox_testkit::{
    PublisherCapability, PublisherHarness, Received, Unsupported, batch_publisher_conformance,
    ordered_publisher_conformance,
};

const HONEST: usize = 0;
const REVERSES: usize = 1;
const SAYS_ONE_MORE: usize = 2;
const REFUSES_A_REPEAT: usize = 3;
const ACCEPTS_WHILE_DOWN: usize = 4;
const SENDS_AT_THE_SECOND_POLL: usize = 5;

#[derive(Default)]
struct Wire {
    down: bool,
    received: Vec<Received>,
}

struct Queue<const DEFECT: usize>(Arc<Mutex<Wire>>);

struct Sender<const DEFECT: usize>(Arc<Mutex<Wire>>);

fn received(delivery: &Delivery<'_>) -> Received {
    let message = delivery.message;
    Received::new(delivery.source, message.id, message.payload.clone(), delivery.headers.clone())
}

impl<const DEFECT: usize> Sender<DEFECT> {
    fn send(&self, delivery: &Delivery<'_>) -> Result<(), PublishError> {
        let mut wire = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if wire.down {
            return Err(PublishError::unavailable("the receiver is down"));
        }
        let message = received(delivery);
        if DEFECT == REFUSES_A_REPEAT && wire.received.contains(&message) {
            return Err(PublishError::rejected("a duplicate"));
        }
        wire.received.push(message);
        Ok(())
    }
}

#[async_trait]
impl<const DEFECT: usize> Publisher for Sender<DEFECT> {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        if DEFECT == SENDS_AT_THE_SECOND_POLL {
            tokio::task::yield_now().await;
        }
        self.send(delivery)?;
        tokio::task::yield_now().await;
        Ok(Accepted)
    }
}

impl<const DEFECT: usize> OrderedPublisher for Sender<DEFECT> {}

#[async_trait]
impl<const DEFECT: usize> BatchPublisher for Sender<DEFECT> {
    async fn publish_batch(&self, deliveries: &[Delivery<'_>]) -> BatchOutcome {
        let mut order: Vec<_> = deliveries.iter().collect();
        if DEFECT == REVERSES {
            order.reverse();
        }
        for (accepted, delivery) in order.into_iter().enumerate() {
            match self.send(delivery) {
                Ok(()) => {}
                Err(_) if DEFECT == ACCEPTS_WHILE_DOWN => return BatchOutcome::all(deliveries),
                Err(error) => return BatchOutcome::prefix(accepted, error),
            }
        }
        if DEFECT == SAYS_ONE_MORE {
            return BatchOutcome::prefix(deliveries.len() + 1, PublishError::refused("one more"));
        }
        BatchOutcome::all(deliveries)
    }
}

impl<const DEFECT: usize> PublisherHarness for Queue<DEFECT> {
    type Publisher = Sender<DEFECT>;
    const CANNOT: &'static [PublisherCapability] = &[PublisherCapability::HoldAcknowledgements];

    async fn open() -> Self {
        Self(Arc::default())
    }

    async fn publisher(&self) -> Self::Publisher {
        Sender(Arc::clone(&self.0))
    }

    async fn received(&self) -> Vec<Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).received.clone()
    }

    async fn set_down(&self, down: bool) -> Result<(), Unsupported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).down = down;
        Ok(())
    }
}

batch_publisher_conformance!(Queue<HONEST>);
ordered_publisher_conformance!(Queue<HONEST>);

/// Whether a publisher with this defect breaks the law.
fn breaks<const DEFECT: usize, F>(name: &'static str, law: fn(PublisherTrial<Queue<DEFECT>>) -> F) -> bool
where
    F: Future<Output = ()> + Send + 'static,
{
    catch_unwind(AssertUnwindSafe(|| laws::run(name, law))).is_err()
}

/// For every law there is a publisher that breaks it, and the suite says so.
#[test]
fn each_law_of_a_faster_publisher_can_fail() {
    let in_order = "batch_is_in_order_and_acknowledged";
    assert!(breaks::<REVERSES, _>(in_order, laws::batch_is_in_order_and_acknowledged));
    assert!(breaks::<SAYS_ONE_MORE, _>(in_order, laws::batch_is_in_order_and_acknowledged));
    assert!(breaks::<REFUSES_A_REPEAT, _>("batch_is_repeat_safe", laws::batch_is_repeat_safe));
    assert!(breaks::<ACCEPTS_WHILE_DOWN, _>(
        "batch_is_refused_while_the_receiver_is_down",
        laws::batch_is_refused_while_the_receiver_is_down
    ));
    assert!(breaks::<SENDS_AT_THE_SECOND_POLL, _>(
        "messages_arrive_in_the_order_of_their_first_polls",
        laws::messages_arrive_in_the_order_of_their_first_polls
    ));
}
