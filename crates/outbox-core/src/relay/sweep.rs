//! One turn of one tenant: claim, publish message by message, settle the accepted prefix.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::publish::{Published, publish};
use super::stop::Stop;
use super::store_call::call;
use crate::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, MessageId, Operation, OutboxMessage, Outcome, Settlement,
    StoreError, StoreOperation, TenantId,
};

/// A holder that lost its session must notice: the claim is verified between messages at least this often.
const VERIFY_INTERVAL: Duration = Duration::from_secs(1);

/// Whose turn it is, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) tenant: TenantId,
    pub(crate) limit: NonZeroU32,
    /// What earlier turns tried in vain.
    pub(crate) tried: Option<Tried>,
}

/// The message that a tenant is at, and how often this relay has published it without a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) message: MessageId,
    pub(crate) attempts: u32,
}

impl Turn {
    /// One more attempt at a message. Others have their turns too: what was tried may be published by now.
    fn attempt(&self, message: &OutboxMessage) -> Tried {
        let before = self.tried.filter(|tried| tried.message == message.id);
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
    /// A message was refused; those before it are marked.
    Refused { tried: Tried, reason: String },
    /// The store failed; what was accepted and not marked is published again.
    Failed { error: StoreError, tried: Option<Tried> },
    /// A stop cut the batch short; what was accepted is marked.
    Interrupted,
}

impl Sweep {
    fn nothing(end: SweepEnd) -> Self {
        Self { settled: 0, end }
    }
}

pub(crate) async fn sweep(shared: Arc<Shared>, turn: Turn, stop: Stop) -> Sweep {
    if stop.requested() {
        return Sweep::nothing(SweepEnd::Interrupted);
    }
    match claim(&shared, &turn).await {
        Ok(ClaimOutcome::Held) => Sweep::nothing(SweepEnd::Held),
        Err(error) => Sweep::nothing(SweepEnd::Failed { error, tried: turn.tried }),
        Ok(ClaimOutcome::Claimed(claimed)) => {
            let Claimed { messages, claim, .. } = claimed;
            let tried = messages.first().map(|message| turn.attempt(message));
            let (accepted, claim, end) = match publish_all(&shared, &turn, &messages, claim, &stop).await {
                Ok(ended) => ended,
                Err(error) => return Sweep::nothing(SweepEnd::Failed { error, tried }),
            };
            match settle(&shared, &turn.tenant, claim, &messages[..accepted]).await {
                Ok(()) => Sweep { settled: accepted, end },
                Err(error) => Sweep::nothing(SweepEnd::Failed { error, tried }),
            }
        }
    }
}

async fn claim(shared: &Arc<Shared>, turn: &Turn) -> Result<ClaimOutcome, StoreError> {
    let request = ClaimRequest::new(turn.tenant.clone(), turn.limit)
        .with_max_bytes(shared.config.max_batch_bytes)
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

type PublishedPrefix = (usize, Box<dyn Claim>, SweepEnd);

/// Publishes until the batch ends, a message is refused, the time is up, or a stop is asked for. An error is
/// a claim that does not live any more, or that cannot be told to.
async fn publish_all(
    shared: &Arc<Shared>,
    turn: &Turn,
    messages: &[OutboxMessage],
    mut claim: Box<dyn Claim>,
    stop: &Stop,
) -> Result<PublishedPrefix, StoreError> {
    // A batch's time is that of its publishing: a slow claim makes it no smaller.
    let started = shared.clock.monotonic();
    let mut verified = started;
    for (index, message) in messages.iter().enumerate() {
        if stop.requested() {
            return Ok((index, claim, SweepEnd::Interrupted));
        }
        let now = shared.clock.monotonic();
        if index > 0 && now.saturating_sub(started) >= shared.config.max_batch_time {
            return Ok((index, claim, SweepEnd::OutOfTime));
        }
        if now.saturating_sub(verified) >= VERIFY_INTERVAL {
            claim = verify(shared, &turn.tenant, claim, index).await?;
            verified = shared.clock.monotonic();
        }
        let tried = turn.attempt(message);
        match publish(shared, message, tried.attempts, stop.abort()).await {
            Published::Accepted => {}
            Published::Refused(error) => {
                let reason = with_causes(&error);
                return Ok((index, claim, SweepEnd::Refused { tried, reason }));
            }
            Published::Dropped => return Ok((index, claim, SweepEnd::Interrupted)),
        }
    }
    // A batch that the byte bound cut short ends with the message that reached the bound.
    let bytes = || messages.iter().map(OutboxMessage::payload_len).sum::<usize>();
    let full = messages.len() >= turn.limit.get() as usize || bytes() >= shared.config.max_batch_bytes;
    let took = shared.clock.monotonic().saturating_sub(started);
    Ok((messages.len(), claim, SweepEnd::Clean { full, took }))
}

/// Asks whether the claim still lives, after so many messages were accepted.
async fn verify(
    shared: &Arc<Shared>,
    tenant: &TenantId,
    mut claim: Box<dyn Claim>,
    accepted: usize,
) -> Result<Box<dyn Claim>, StoreError> {
    let watch = shared.observers.start(&Operation::verify(shared.store.source(), tenant, accepted));
    let answer = call(shared, StoreOperation::Verify, shared.config.store_timeout, async move {
        claim.verify().await?;
        Ok(claim)
    })
    .await;
    watch.end(&match &answer {
        Ok(_) => Outcome::Verified,
        Err(error) => Outcome::Failed(error),
    });
    answer
}

/// Marks the accepted prefix; an empty one only gives the tenant back.
async fn settle(
    shared: &Arc<Shared>,
    tenant: &TenantId,
    claim: Box<dyn Claim>,
    accepted: &[OutboxMessage],
) -> Result<(), StoreError> {
    let watch = shared.observers.start(&Operation::settle(shared.store.source(), tenant, accepted.len()));
    let settlement = Settlement::published(accepted.iter().map(|message| message.id));
    let answer = call(shared, StoreOperation::Settle, shared.config.store_timeout, async move {
        claim.settle(settlement).await
    })
    .await;
    watch.end(&match &answer {
        Ok(()) => Outcome::Settled { messages: accepted.len() },
        Err(error) => Outcome::Failed(error),
    });
    answer
}

/// An error's line, followed by those of its causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
