//! How a relay publishes: to which publisher, and what of a tenant is on its way at once.

use std::fmt;
use std::sync::Arc;

use crate::config::ConfigProblem;
use crate::{BatchPublisher, OrderedPublisher, Publisher};

/// To which publisher a relay hands messages, in which order, and how many of a tenant are on their way at once.
///
/// Whatever it is, a message is marked only after it was accepted, and one relay holds a tenant at a time. A
/// publisher by itself is published to [in order](Self::in_order). `docs/ordering.md` says which to take.
///
/// What a publisher does not promise cannot be asked of it:
///
/// ```compile_fail
/// # use outbox_core::{Accepted, Delivery, PublishError, Publisher, Publishing, async_trait};
/// struct Unordered;
///
/// #[async_trait]
/// impl Publisher for Unordered {
///     async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
///         Ok(Accepted)
///     }
/// }
///
/// Publishing::pipelined(Unordered, 32); // it is no `OrderedPublisher`
/// ```
#[derive(Clone)]
pub struct Publishing(pub(crate) Shape);

#[derive(Clone)]
pub(crate) enum Shape {
    InOrder(Arc<dyn Publisher>),
    BySubject { publisher: Arc<dyn Publisher>, in_flight: usize },
    Pipelined { publisher: Arc<dyn Publisher>, in_flight: usize },
    InSlices { publisher: Arc<dyn BatchPublisher>, slices: Slices },
}

impl Publishing {
    /// One message of a tenant at a time, by id. A refusal stops the tenant.
    pub fn in_order(publisher: impl Publisher) -> Self {
        Self(Shape::InOrder(Arc::new(publisher)))
    }

    /// One message of each *subject* at a time, by id; different subjects at once, `in_flight` messages of a tenant
    /// at most, which must be at least 1. A refusal stops its subject, which backs off alone. More than
    /// [`MAX_EXCLUDED_SUBJECTS`](crate::ClaimRequest::MAX_EXCLUDED_SUBJECTS) subjects that wait stop the tenant.
    ///
    /// There is no order between two subjects.
    pub fn by_subject(publisher: impl Publisher, in_flight: usize) -> Self {
        Self(Shape::BySubject { publisher: Arc::new(publisher), in_flight })
    }

    /// A tenant's messages by id, `in_flight` of them on their way at once over one ordered connection, which must be
    /// at least 1.
    ///
    /// After a failure nothing more is begun, what is on its way is waited for, and the accepted *prefix* is
    /// marked. What was accepted beyond it is published again, after the message that failed: the receiver sees
    /// it before that message and after it, unless it refuses n + 1 until it has n.
    pub fn pipelined(publisher: impl OrderedPublisher, in_flight: usize) -> Self {
        Self(Shape::Pipelined { publisher: Arc::new(publisher), in_flight })
    }

    /// Slices of a tenant's messages, by id, one slice at a time: one acknowledgement for many messages.
    pub fn in_slices(publisher: impl BatchPublisher, slices: Slices) -> Self {
        Self(Shape::InSlices { publisher: Arc::new(publisher), slices })
    }

    /// What is out of its range.
    pub(crate) fn problems(&self) -> Vec<ConfigProblem> {
        let numbers = match &self.0 {
            Shape::InOrder(_) => vec![],
            Shape::BySubject { in_flight, .. } | Shape::Pipelined { in_flight, .. } => {
                vec![("in_flight", *in_flight)]
            }
            Shape::InSlices { slices, .. } => {
                vec![("max_messages", slices.max_messages), ("max_bytes", slices.max_bytes)]
            }
        };
        let zero = numbers.into_iter().filter(|(_, number)| *number == 0);
        zero.map(|(field, _)| ConfigProblem::Zero { field }).collect()
    }
}

impl<P: Publisher> From<P> for Publishing {
    fn from(publisher: P) -> Self {
        Self::in_order(publisher)
    }
}

impl fmt::Debug for Publishing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Shape::InOrder(_) => f.write_str("in order"),
            Shape::BySubject { in_flight, .. } => write!(f, "by subject, {in_flight} in flight"),
            Shape::Pipelined { in_flight, .. } => write!(f, "pipelined, {in_flight} in flight"),
            Shape::InSlices { slices, .. } => write!(f, "in slices of {}", slices.max_messages),
        }
    }
}

/// How much of a batch a [`BatchPublisher`] is handed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Slices {
    /// How many messages, at most. Default 256; at least 1.
    pub max_messages: usize,
    /// How many bytes, at most, as [`OutboxMessage::size`](crate::OutboxMessage::size) counts them; one message, if it
    /// has more. Default 1 MiB; at least 1.
    pub max_bytes: usize,
}

impl Slices {
    /// Sets how many messages, at most.
    pub fn with_max_messages(mut self, max_messages: usize) -> Self {
        self.max_messages = max_messages;
        self
    }

    /// Sets how many bytes, at most.
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }
}

impl Default for Slices {
    fn default() -> Self {
        Self { max_messages: 256, max_bytes: 1024 * 1024 }
    }
}
