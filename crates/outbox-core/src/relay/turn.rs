//! A turn: whose it is, and what came of it. No code of a turn, so that whoever gives turns and whoever takes them
//! need not know each other.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::{MessageId, OutboxMessage, StoreError, TenantId};

/// Which turn, of those that an engine gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TurnId(pub(super) u64);

/// A turn of those who are its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    pub(crate) members: Vec<Member>,
}

/// A tenant whose turn it is, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) tenant: TenantId,
    pub(crate) limit: NonZeroU32,
    /// What earlier turns tried in vain.
    pub(crate) tried: Option<Tried>,
    /// Whether the tenant has waited after a failure of its own.
    pub(crate) after_failure: bool,
    /// Subjects that wait: the claim leaves them out.
    pub(crate) excluded: Arc<[String]>,
    /// What earlier turns tried in vain, of each subject that failed.
    pub(crate) failed: Arc<HashMap<String, Tried>>,
}

/// The message that a tenant is at, and how often this relay has published it without a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) message: MessageId,
    pub(crate) attempts: u32,
}

impl Member {
    /// Whether a message of this subject was tried in vain by an earlier turn.
    pub(crate) fn has_failed(&self, subject: &str) -> bool {
        !self.failed.is_empty() && self.failed.contains_key(subject)
    }

    /// One more attempt at a message. Others have their turns too: what was tried may be published by now.
    pub(crate) fn attempt(&self, message: &OutboxMessage) -> Tried {
        let of_subject = || {
            let failed = Some(&self.failed).filter(|failed| !failed.is_empty())?;
            failed.get(&message.subject_id).copied()
        };
        let of_message = |tried: &Tried| tried.message == message.id;
        let before = self.tried.filter(of_message).or_else(|| of_subject().filter(of_message));
        let attempts = before.map_or(0, |tried| tried.attempts).saturating_add(1);
        Tried { message: message.id, attempts }
    }
}

/// How a member's part of a turn ended.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// How many messages are marked.
    pub(crate) settled: usize,
    pub(crate) end: SweepEnd,
    /// Subjects that are held back from now on.
    pub(crate) refusals: Vec<Refusal>,
    /// Subjects that failed before and flow again.
    pub(crate) served: Vec<String>,
    /// How long the claim took.
    pub(crate) claim_took: Duration,
}

#[derive(Debug)]
pub(crate) enum SweepEnd {
    /// Another holds the tenant.
    Held,
    /// Every message of the batch had its turn, and what was accepted is to be marked. `full`: the batch was as large
    /// as it could be, so there may be more.
    Clean { full: bool, took: Duration },
    /// The batch was cut short by its time bound; there is more.
    OutOfTime,
    /// A message was refused, and the tenant waits; what was accepted is marked.
    Refused { tried: Tried, reason: String },
    /// The store failed; what was accepted and not marked is published again.
    Failed { error: StoreError, tried: Option<Tried> },
    /// A stop cut the batch short; what was accepted is marked.
    Interrupted,
}

/// A subject whose message was refused: it is held back, and the others go on.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) subject: String,
    pub(crate) tried: Tried,
    pub(crate) reason: String,
    /// Whether earlier messages of the subject were accepted in the same turn.
    pub(crate) progress: bool,
}

impl Sweep {
    /// A turn without news of any subject.
    pub(crate) fn new(settled: usize, end: SweepEnd) -> Self {
        let (refusals, served, claim_took) = (Vec::new(), Vec::new(), Duration::ZERO);
        Self { settled, end, refusals, served, claim_took }
    }

    /// A turn that came to nothing.
    pub(crate) fn nothing(end: SweepEnd) -> Self {
        Self::new(0, end)
    }
}
