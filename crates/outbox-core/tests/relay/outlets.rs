//! Publishers of the other two sorts, made of an ordinary one.

use std::sync::{Arc, Mutex};

use outbox_core::{
    Accepted, BatchOutcome, BatchPublisher, Delivery, MessageId, OrderedPublisher, PublishError, Publisher,
    async_trait,
};

/// Declares that a publisher keeps the order of its first polls.
pub(crate) struct Ordered<P>(pub(crate) P);

#[async_trait]
impl<P: Publisher> Publisher for Ordered<P> {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.0.publish(delivery).await
    }
}

impl<P: Publisher> OrderedPublisher for Ordered<P> {}

/// Publishes a slice message by message, up to the first that is refused; it remembers the slices.
pub(crate) struct Slices<P> {
    pub(crate) inner: P,
    pub(crate) seen: Arc<Mutex<Vec<Vec<MessageId>>>>,
}

impl<P> Slices<P> {
    pub(crate) fn of(inner: P) -> Self {
        Self { inner, seen: Arc::default() }
    }
}

#[async_trait]
impl<P: Publisher> BatchPublisher for Slices<P> {
    async fn publish_batch(&self, deliveries: &[Delivery<'_>]) -> BatchOutcome {
        self.seen.lock().unwrap().push(deliveries.iter().map(|delivery| delivery.message.id).collect());
        for (accepted, delivery) in deliveries.iter().enumerate() {
            if let Err(error) = self.inner.publish(delivery).await {
                return BatchOutcome::prefix(accepted, error);
            }
        }
        BatchOutcome::all(deliveries)
    }
}
