//! In which order a tenant's messages go out.

use std::fmt;

/// In which order a tenant's messages go out, and how many of them are on their way at once.
///
/// Whatever it is, a message is marked only after it was accepted, and one relay holds a tenant at a time.
/// `docs/ordering.md` says which to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ordering {
    /// One message of the tenant at a time, by id. A refusal stops the tenant.
    #[default]
    Tenant,
    /// One message of each *subject* at a time, by id; different subjects at once. A refusal stops its subject,
    /// which backs off alone. More than
    /// [`MAX_EXCLUDED_SUBJECTS`](crate::ClaimRequest::MAX_EXCLUDED_SUBJECTS) subjects that wait stop the tenant.
    ///
    /// There is no order between two subjects.
    Subject {
        /// How many messages of the tenant are on their way at once, at most; at least 1.
        in_flight: usize,
    },
    /// The tenant's messages by id, several on their way at once, over one ordered connection. Only for a
    /// publisher that is an [`OrderedPublisher`](crate::OrderedPublisher).
    ///
    /// After a failure nothing more is begun, what is on its way is waited for, and the accepted *prefix* is
    /// marked. What was accepted beyond it is published again, after the message that failed: the receiver sees
    /// it before that message and after it, unless it refuses n + 1 until it has n.
    Pipelined {
        /// How many messages of the tenant are on their way at once, at most; at least 1.
        in_flight: usize,
    },
}

impl Ordering {
    /// How many messages of a tenant are on their way at once, at most.
    pub const fn in_flight(self) -> usize {
        match self {
            Self::Tenant => 1,
            Self::Subject { in_flight } | Self::Pipelined { in_flight } => in_flight,
        }
    }
}

impl fmt::Display for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant => f.write_str("by tenant"),
            Self::Subject { in_flight } => write!(f, "by subject, {in_flight} in flight"),
            Self::Pipelined { in_flight } => write!(f, "pipelined, {in_flight} in flight"),
        }
    }
}
