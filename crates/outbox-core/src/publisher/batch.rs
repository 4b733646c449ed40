//! A publisher that takes several messages with one acknowledgement.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Delivery, PublishError};
use crate::BoxFuture;

/// Hands several messages of a tenant to the world at once: one round trip to the broker for all of them.
///
/// It is handed slices of a claimed batch, in id order, one after the other:
/// [`Publishing::in_slices`](crate::Publishing::in_slices).
///
/// - Publish the slice in its order, and answer how many of it, from its beginning, the receiver has
///   *acknowledged*. A message that was acknowledged after one that was not does not count: it comes again.
/// - What holds for a [`Publisher`](crate::Publisher) holds here, too: no slice may block the thread.
///
/// # Cancellation
/// The relay drops the future when the publish deadline passes, which is for the whole slice, or when a stop's
/// does. Then nothing of the slice is known to be accepted, and all of it is published again.
///
/// # Panics
/// A panic is a refusal of the slice's first message; nothing of the slice is known to be accepted.
#[async_trait]
pub trait BatchPublisher: Send + Sync + 'static {
    /// Publishes these messages, of which there is at least one.
    async fn publish_batch(&self, deliveries: &[Delivery<'_>]) -> BatchOutcome;
}

/// A publisher that others use too.
impl<P: BatchPublisher + ?Sized> BatchPublisher for Arc<P> {
    fn publish_batch<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        deliveries: &'life1 [Delivery<'life2>],
    ) -> BoxFuture<'async_trait, BatchOutcome>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        (**self).publish_batch(deliveries)
    }
}

/// How much of a slice was acknowledged, and why not all of it.
#[derive(Debug)]
#[must_use]
pub struct BatchOutcome {
    accepted: usize,
    refusal: Option<PublishError>,
}

impl BatchOutcome {
    /// Every one of these was acknowledged.
    pub fn all(deliveries: &[Delivery<'_>]) -> Self {
        Self { accepted: deliveries.len(), refusal: None }
    }

    /// The first `accepted` messages were acknowledged, and the one after them was not, for this reason. More
    /// than were given are a fault, which counts as a refusal of all of them.
    pub fn prefix(accepted: usize, refusal: PublishError) -> Self {
        Self { accepted, refusal: Some(refusal) }
    }

    /// How many messages were acknowledged, from the slice's beginning.
    pub fn accepted(&self) -> usize {
        self.accepted
    }

    /// Why the message after them was not.
    pub fn refusal(&self) -> Option<&PublishError> {
        self.refusal.as_ref()
    }

    /// The answer to a slice of so many messages: how many are accepted, and why the next one is not.
    pub(crate) fn of(self, given: usize) -> (usize, Option<PublishError>) {
        let Self { accepted, refusal } = self;
        if accepted > given {
            let fault = format!("the publisher says that {accepted} of {given} messages were accepted");
            return (0, Some(PublishError::refused(fault)));
        }
        let missing = || PublishError::refused(format!("{accepted} of {given} messages were accepted"));
        (accepted, (accepted < given).then(|| refusal.unwrap_or_else(missing)))
    }
}
