//! Who watches the relay: one observation for each probe, claim, publish, verification and settlement, and
//! notices between them.

use std::fmt;
use std::time::Duration;

use crate::{
    Headers, MessageId, OldestPending, OutboxMessage, PublishError, RefusalClass, StoreError, TenantId,
};

/// Watches what the relay does. Several compose; none costs nothing.
///
/// It runs on the relay's own tasks: it must not block, and must not wait. The time that it takes is added to that
/// of what it watches: a slow one makes the relay slow, and harms no promise.
///
/// # Panics
/// A panic is contained, logged and counted ([`Relay::observer_panics`](crate::Relay::observer_panics)); it
/// changes nothing of what the relay does.
pub trait Observer: Send + Sync + 'static {
    /// An operation begins. `None` is: not interested in this one.
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>>;

    /// Something changed between operations.
    fn notice(&self, notice: &Notice<'_>);
}

/// One operation, watched from its start to its end.
pub trait Observation: Send {
    /// Adds to the headers that a publish sends, a trace's context for example. Called once, before the
    /// publish; the message's own headers are in there already.
    fn propagate(&mut self, headers: &mut Headers);

    /// Polls the operation's future once: calls `poll` exactly once, inside whatever the observation enters
    /// (a span). Called for a publish of one message only, and not where one future publishes a slice of them. If
    /// it never calls `poll`, the relay does.
    fn enter(&mut self, poll: &mut dyn FnMut());

    /// The operation ended. Called exactly once, also when its future was dropped.
    fn end(self: Box<Self>, outcome: &Outcome<'_>);
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperationKind {
    /// Looking for each tenant's oldest message.
    Probe,
    /// Taking a tenant and reading its messages.
    Claim,
    /// Handing one message to the publisher.
    Publish,
    /// Asking, between two messages, whether the claim still lives.
    Verify,
    /// Marking what was published and giving the tenant back.
    Settle,
}

impl OperationKind {
    /// Its name: `probe`, `claim`, `publish`, `verify` or `settle`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Claim => "claim",
            Self::Publish => "publish",
            Self::Verify => "verify",
            Self::Settle => "settle",
        }
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An operation that begins.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Operation<'a> {
    /// What is being done.
    pub kind: OperationKind,
    /// Which outbox it is about: the store's source.
    pub source: &'a str,
    /// What has few values, and may be an attribute of a metric.
    pub labels: Labels<'a>,
    /// What has as many values as there are messages, and belongs on a span only.
    pub details: Details<'a>,
}

/// What an operation is about, as far as that has few values.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Labels<'a> {
    /// Whose messages; none for a probe, which is about all.
    pub tenant: Option<&'a TenantId>,
    /// The message's kind; for a publish only.
    pub message_kind: Option<&'a str>,
}

/// What an operation is about, as far as that differs from message to message.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Details<'a> {
    /// The message; for a publish only.
    pub message: Option<&'a OutboxMessage>,
    /// Which attempt at it; for a publish only.
    pub attempt: Option<u32>,
    /// How many messages: a claim's limit, those that were accepted before a verification, a settlement's size.
    pub messages: Option<usize>,
}

impl<'a> Operation<'a> {
    pub(crate) fn probe(source: &'a str) -> Self {
        Self { kind: OperationKind::Probe, source, labels: Labels::default(), details: Details::default() }
    }

    pub(crate) fn claim(source: &'a str, tenant: &'a TenantId, limit: usize) -> Self {
        Self::batch(OperationKind::Claim, source, tenant, limit)
    }

    pub(crate) fn verify(source: &'a str, tenant: &'a TenantId, accepted: usize) -> Self {
        Self::batch(OperationKind::Verify, source, tenant, accepted)
    }

    pub(crate) fn settle(source: &'a str, tenant: &'a TenantId, published: usize) -> Self {
        Self::batch(OperationKind::Settle, source, tenant, published)
    }

    fn batch(kind: OperationKind, source: &'a str, tenant: &'a TenantId, messages: usize) -> Self {
        let labels = Labels { tenant: Some(tenant), message_kind: None };
        Self { kind, source, labels, details: Details { messages: Some(messages), ..Details::default() } }
    }

    pub(crate) fn publish(source: &'a str, message: &'a OutboxMessage, attempt: u32) -> Self {
        Self {
            kind: OperationKind::Publish,
            source,
            labels: Labels { tenant: Some(&message.tenant_id), message_kind: Some(&message.kind) },
            details: Details { message: Some(message), attempt: Some(attempt), messages: None },
        }
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// A probe: the tenants that have something.
    Probed(&'a [OldestPending]),
    /// A claim: held, with so many messages.
    #[non_exhaustive]
    Claimed {
        /// How many messages it handed over.
        messages: usize,
    },
    /// A claim: another holds the tenant.
    Held,
    /// A publish: acknowledged.
    Accepted,
    /// A publish: not acknowledged.
    #[non_exhaustive]
    Refused {
        /// Where the refusal comes from.
        cause: RefusalCause,
        /// What the publisher said, or the relay in its place.
        error: &'a PublishError,
    },
    /// A verification: the claim lives.
    Verified,
    /// A settle: so many are marked.
    #[non_exhaustive]
    Settled {
        /// How many messages were marked.
        messages: usize,
    },
    /// A probe, claim, verify or settle: the store failed. After a failed verification the claim counts as lost.
    Failed(&'a StoreError),
    /// The operation's future was dropped before it ended, or the message was in a slice behind one that was
    /// refused: nobody knows.
    Abandoned,
}

/// Where a refusal comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalCause {
    /// The publisher said so.
    Publisher(RefusalClass),
    /// The publish deadline passed.
    Deadline,
    /// The publisher panicked.
    Panic,
}

/// Something that changed between operations.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// The relay began to work.
    Started,
    /// The relay holds nothing any more and will not work again.
    Stopped,
    /// The relay's task ended without being told to: a fault in the relay, or a runtime that shut down.
    Died,
    /// A tenant backs off after a refusal or a store's error.
    #[non_exhaustive]
    BackedOff {
        /// Whose messages wait.
        tenant: &'a TenantId,
        /// The message that was refused, if it was one.
        message: Option<MessageId>,
        /// How many failures in a row this is.
        failures: u32,
        /// How long it waits.
        wait: Duration,
        /// Why.
        reason: &'a str,
    },
    /// A tenant that backed off is well again.
    #[non_exhaustive]
    Recovered {
        /// Whose messages flow again.
        tenant: &'a TenantId,
    },
    /// A subject is held back after a refusal; the tenant's others go on. Only where messages are published
    /// [by subject](crate::Publishing::by_subject).
    #[non_exhaustive]
    SubjectBackedOff {
        /// Whose.
        tenant: &'a TenantId,
        /// Which subject's messages wait.
        subject: &'a str,
        /// The message that was refused.
        message: MessageId,
        /// How many failures of the subject in a row this is.
        failures: u32,
        /// How long it waits.
        wait: Duration,
        /// Why.
        reason: &'a str,
    },
    /// A subject that was held back is well again.
    #[non_exhaustive]
    SubjectRecovered {
        /// Whose.
        tenant: &'a TenantId,
        /// Which subject's messages flow again.
        subject: &'a str,
    },
    /// Probes began to fail.
    #[non_exhaustive]
    ProbeFailing {
        /// Why.
        error: &'a StoreError,
    },
    /// Probes succeed again.
    ProbeRecovered,
}
