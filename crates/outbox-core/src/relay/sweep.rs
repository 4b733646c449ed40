//! One turn of one tenant: claim, publish, settle what was accepted.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::publishing::{Published, Refusal, publish_all};
use super::stop::Stop;
use super::store_call::call;
use crate::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, MessageId, Operation, OutboxMessage, Outcome, Settlement,
    StoreError, StoreOperation, TenantId,
};

/// Whose turn it is, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
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

impl Turn {
    /// A tenant's turn, of which nothing failed before.
    pub(crate) fn new(tenant: TenantId, limit: NonZeroU32) -> Self {
        let (excluded, failed) = (Arc::default(), Arc::default());
        Self { tenant, limit, tried: None, after_failure: false, excluded, failed }
    }

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

/// How a turn ended.
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
    /// Every message of the batch is published and marked. `full`: the batch was as large as it could be, so
    /// there may be more.
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

impl Sweep {
    /// A turn without news of any subject.
    pub(crate) fn new(settled: usize, end: SweepEnd) -> Self {
        let (refusals, served, claim_took) = (Vec::new(), Vec::new(), Duration::ZERO);
        Self { settled, end, refusals, served, claim_took }
    }

    fn nothing(end: SweepEnd) -> Self {
        Self::new(0, end)
    }
}

pub(crate) async fn sweep(shared: Arc<Shared>, turn: Turn, stop: Stop) -> Sweep {
    if stop.requested() {
        return Sweep::nothing(SweepEnd::Interrupted);
    }
    let asked = shared.clock.monotonic();
    match claim(&shared, &turn).await {
        Ok(ClaimOutcome::Held) => Sweep::nothing(SweepEnd::Held),
        Err(error) => Sweep::nothing(SweepEnd::Failed { error, tried: turn.tried }),
        Ok(ClaimOutcome::Claimed(claimed)) => {
            let Claimed { messages, claim, .. } = claimed;
            let tried = messages.first().map(|message| turn.attempt(message));
            let claim_took = shared.clock.monotonic().saturating_sub(asked);
            let published = match publish_all(&shared, &turn, &messages, &stop, claim, asked).await {
                Ok(published) => published,
                Err(error) => return Sweep::nothing(SweepEnd::Failed { error, tried }),
            };
            let Published { claim, mut end, accepted, served, refusals } = published;
            if let SweepEnd::Clean { .. } | SweepEnd::OutOfTime = end
                && let Some(Refusal { tried, reason, .. }) = refusals.last().filter(|_| accepted.is_empty())
                && turn.after_failure
            {
                // Nothing but refusals after a failure of the tenant: it is none of the subjects' own.
                end = SweepEnd::Refused { tried: *tried, reason: reason.clone() };
            }
            let settled = accepted.len();
            let (end, settled, served) = match settle(&shared, &turn.tenant, claim, accepted).await {
                Ok(()) => (end, settled, served),
                // Subjects that were refused are held back all the same.
                Err(error) => (SweepEnd::Failed { error, tried }, 0, Vec::new()),
            };
            Sweep { settled, end, refusals, served, claim_took }
        }
    }
}

async fn claim(shared: &Arc<Shared>, turn: &Turn) -> Result<ClaimOutcome, StoreError> {
    let request = ClaimRequest::new(turn.tenant.clone(), turn.limit)
        .with_max_bytes(shared.config.max_batch_bytes)
        .with_excluded_subjects(Arc::clone(&turn.excluded))
        .with_timeout(shared.config.store_timeout);
    let limit = turn.limit.get() as usize;
    let watch = shared.observers.start(&Operation::claim(shared.store.source(), &turn.tenant, limit));
    let store = Arc::clone(&shared.store);
    let answer = call(shared, StoreOperation::Claim, shared.config.store_timeout, async move {
        store.claim(&request).await
    })
    .await;
    watch.end(&match &answer {
        Ok(ClaimOutcome::Held) => Outcome::Held,
        Ok(ClaimOutcome::Claimed(claimed)) => Outcome::Claimed { messages: claimed.messages.len() },
        Err(error) => Outcome::Failed(error),
    });
    answer
}

/// Marks what was accepted; nothing only gives the tenant back.
async fn settle(
    shared: &Arc<Shared>,
    tenant: &TenantId,
    claim: Box<dyn Claim>,
    accepted: Vec<MessageId>,
) -> Result<(), StoreError> {
    let messages = accepted.len();
    let watch = shared.observers.start(&Operation::settle(shared.store.source(), tenant, messages));
    let settlement = Settlement::published(accepted);
    let answer = call(shared, StoreOperation::Settle, shared.config.store_timeout, async move {
        claim.settle(settlement).await
    })
    .await;
    watch.end(&match &answer {
        Ok(()) => Outcome::Settled { messages },
        Err(error) => Outcome::Failed(error),
    });
    answer
}
