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

/// An operation that begins. Each is about one outbox: the store's source.
///
/// What it says of a message has as many values as there are messages, and belongs on a span; a tenant and a message's
/// kind have few, and may be attributes of a metric.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Operation<'a> {
    /// Looking for each tenant's oldest message.
    #[non_exhaustive]
    Probe {
        /// Which outbox.
        source: &'a str,
    },
    /// Taking tenants and reading their messages.
    #[non_exhaustive]
    Claim {
        /// Which outbox.
        source: &'a str,
        /// Whom to take, and how many messages of each at most.
        tenants: &'a [Share<'a>],
    },
    /// Handing one message to the publisher.
    #[non_exhaustive]
    Publish {
        /// Which outbox.
        source: &'a str,
        /// The message.
        message: &'a OutboxMessage,
        /// Which attempt at it.
        attempt: u32,
    },
    /// Asking, between two messages, whether the claim still lives.
    #[non_exhaustive]
    Verify {
        /// Which outbox.
        source: &'a str,
        /// Who is held, and how many messages of each were accepted before.
        tenants: &'a [Share<'a>],
    },
    /// Marking what was published and giving the tenants back.
    #[non_exhaustive]
    Settle {
        /// Which outbox.
        source: &'a str,
        /// Who is held, and how many messages of each were accepted. It may be more than are to be marked: what was
        /// accepted behind a failure, where messages are [pipelined](crate::Publishing::pipelined), comes again.
        tenants: &'a [Share<'a>],
    },
}

/// A tenant's part in an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Share<'a> {
    /// Whose.
    pub tenant: &'a TenantId,
    /// How many messages.
    pub messages: usize,
}

impl<'a> Share<'a> {
    pub(crate) fn of(tenant: &'a TenantId, messages: usize) -> Self {
        Self { tenant, messages }
    }
}

impl<'a> Operation<'a> {
    /// What is being done.
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::Probe { .. } => OperationKind::Probe,
            Self::Claim { .. } => OperationKind::Claim,
            Self::Publish { .. } => OperationKind::Publish,
            Self::Verify { .. } => OperationKind::Verify,
            Self::Settle { .. } => OperationKind::Settle,
        }
    }

    /// Which outbox it is about: the store's source.
    pub const fn source(&self) -> &'a str {
        match self {
            Self::Probe { source }
            | Self::Claim { source, .. }
            | Self::Publish { source, .. }
            | Self::Verify { source, .. }
            | Self::Settle { source, .. } => source,
        }
    }

    /// The tenants of a claim, a verification or a settlement.
    pub const fn tenants(&self) -> &'a [Share<'a>] {
        match self {
            Self::Claim { tenants, .. } | Self::Verify { tenants, .. } | Self::Settle { tenants, .. } => {
                tenants
            }
            Self::Probe { .. } | Self::Publish { .. } => &[],
        }
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// A probe: the tenants that have something.
    Probed(&'a [OldestPending]),
    /// A claim: these are held. Any other that was asked for, another holds.
    #[non_exhaustive]
    Claimed {
        /// Who, and how many messages of each were handed over.
        tenants: &'a [Share<'a>],
    },
    /// A claim: others hold all the tenants.
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
        /// Who, and how many messages of each were marked.
        tenants: &'a [Share<'a>],
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
    /// Another server answers than before: it was restarted, or a fail-over took place.
    AnotherServer,
}
