//! What publishing means: the application's part.

mod batch;
mod ordered;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::text::words;
use crate::{BoxFuture, Headers, OutboxMessage};

pub use batch::{BatchOutcome, BatchPublisher};
pub use ordered::OrderedPublisher;

/// Hands a message to the world: a broker, a queue, an HTTP endpoint.
///
/// - Answer [`Accepted`] only when the receiver has *acknowledged* the message: the relay marks the row on
///   the strength of that answer, and a row marked too early is a message lost.
/// - Be ready for the same message again. A crash, a lost session or a failed mark re-publishes it, under the
///   same source and id; subscribers deduplicate on the two.
/// - Do not take connections from the pool that the relay claims with: it would starve itself.
/// - Do not block the thread: wait with `.await`, and hand what blocks to `tokio::task::spawn_blocking`. While a poll
///   keeps its thread, no deadline ends it, and whatever else the thread is for waits: other tenants, and the
///   application's own tasks. A poll, or a drop of the future, that takes a second is logged, once for each tenant. On
///   a runtime of several threads the relay then polls the publisher apart, for a minute, so that nobody waits for it
///   a second time. On a runtime of one thread everybody waits each time.
///
/// The relay calls it for one message of a tenant at a time, in id order, and for several tenants at once; for
/// several messages of a tenant, if [`Publishing`](crate::Publishing) says so.
///
/// # Cancellation
/// The relay drops the future when the publish deadline passes, or when a stop's deadline does. The message
/// may or may not have been received; it stays pending and is published again.
///
/// # Panics
/// A panic is a refusal that carries the panic's message.
#[async_trait]
pub trait Publisher: Send + Sync + 'static {
    /// Publishes one message.
    ///
    /// # Errors
    /// [`PublishError`], if the message was not acknowledged. It stays pending, and its tenant backs off.
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError>;
}

/// A publisher that others use too.
impl<P: Publisher + ?Sized> Publisher for Arc<P> {
    fn publish<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        delivery: &'life1 Delivery<'life2>,
    ) -> BoxFuture<'async_trait, Result<Accepted, PublishError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        (**self).publish(delivery)
    }
}

/// The receiver has acknowledged the message.
///
/// A value of its own and not `()`, so that a publisher that forgets to wait for the acknowledgement does not
/// answer so by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted;

/// A message on its way to the publisher.
#[derive(Debug)]
#[non_exhaustive]
pub struct Delivery<'a> {
    /// The message.
    pub message: &'a OutboxMessage,
    /// Which outbox it comes from. Ids are unique within a source only: deduplicate on (source, id).
    pub source: &'a str,
    /// The headers to send: the message's own, with what observers added to them (a trace's context).
    pub headers: &'a Headers,
    /// Which attempt at this tenant's (or, published [by subject](crate::Publishing::by_subject), this subject's) next
    /// message it is, by this relay, since its last success: 1 is the first. Another replica's attempts, and those before a restart, are not known and not counted.
    pub attempt: u32,
}

impl<'a> Delivery<'a> {
    /// The first attempt at a message, with the message's own headers.
    pub fn new(source: &'a str, message: &'a OutboxMessage) -> Self {
        Self { message, source, headers: &message.headers, attempt: 1 }
    }

    /// Replaces the headers to send.
    pub fn with_headers(mut self, headers: &'a Headers) -> Self {
        self.headers = headers;
        self
    }

    /// Says which attempt it is.
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }
}

/// What sort of refusal it is. Each leaves the message pending; only a policy may act on the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalClass {
    /// The way to the receiver is down. An outage says nothing about the message.
    Unavailable,
    /// The receiver did not take it now and may take it later.
    Refused,
    /// The receiver will never take this message: it is too large, or not what it expects. The relay tries it again
    /// all the same: see [`PublishError::rejected`].
    Rejected,
}

impl fmt::Display for RefusalClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
        })
    }
}

/// Why a message was not acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("{class}: {}", words(reason))]
pub struct PublishError {
    class: RefusalClass,
    reason: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl PublishError {
    /// The way to the receiver is down.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(RefusalClass::Unavailable, reason)
    }

    /// The receiver did not take it now.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::new(RefusalClass::Refused, reason)
    }

    /// The receiver will never take it.
    ///
    /// The relay tries it again all the same, ever less often and without an end, and the messages of its tenant (with
    /// [by subject](crate::Publishing::by_subject), of its subject) wait behind it. Health turns red once it is older than
    /// the tolerated lag. It ends when the receiver takes the message, or when somebody repairs or deletes the row.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Self::new(RefusalClass::Rejected, reason)
    }

    fn new(class: RefusalClass, reason: impl Into<String>) -> Self {
        Self { class, reason: reason.into(), source: None }
    }

    /// Keeps the error that it came from. The log and health say its text behind the reason, unless the reason is the
    /// same text or ends with it.
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What sort of refusal it is.
    pub fn class(&self) -> RefusalClass {
        self.class
    }

    /// The reason, in the publisher's words.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
