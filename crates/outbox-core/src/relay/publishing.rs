//! A claimed batch to the publisher, by its ordering: one file each.

mod batch;
mod pipelined;
mod strict;
mod subject;

use std::sync::Arc;
use std::time::Duration;

use super::stop::Stop;
use super::store_call::call;
use super::sweep::{SweepEnd, Tried, Turn};
use super::{Outlet, Shared};
use crate::{Claim, MessageId, Operation, Ordering, OutboxMessage, Outcome, StoreError, StoreOperation};

/// How long a proof of the claim counts, from when it was asked for: nothing is begun on an older one. An answer
/// that was held up, by a slow database or a process that stood still, says nothing of the time since.
const VERIFY_INTERVAL: Duration = Duration::from_secs(1);

/// A claimed batch, while it is published.
pub(super) struct Batch<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) turn: &'a Turn,
    pub(super) messages: &'a [OutboxMessage],
    stop: &'a Stop,
    /// A batch's time is that of its publishing: a slow claim makes it no smaller.
    started: Duration,
    /// When the store was asked, whose answer was the last proof that the claim lives.
    proven: Duration,
    /// Whether the claim was verified in time and nothing was begun since: one message goes out on that, however long
    /// an observer looks at it.
    just_verified: bool,
    /// How long the last proof took, if it was too old when it came.
    came_late: Option<Duration>,
    /// How many messages were begun.
    begun: usize,
    accepted: Vec<MessageId>,
    /// Subjects that failed in an earlier turn and of which a message was accepted in this one.
    served: Vec<String>,
    refusals: Vec<Refusal>,
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

/// What was published of a batch.
pub(super) struct Published {
    pub(super) claim: Box<dyn Claim>,
    pub(super) end: SweepEnd,
    /// What is to be marked, in id order.
    pub(super) accepted: Vec<MessageId>,
    pub(super) served: Vec<String>,
    pub(super) refusals: Vec<Refusal>,
}

/// Publishes until the batch ends, the time is up, a stop is asked for, or a refusal ends it. An error is a claim
/// that does not live any more, or that cannot be told to. Nothing is in flight when it answers. The claim was asked
/// for at `asked`.
pub(super) async fn publish_all(
    shared: &Arc<Shared>,
    turn: &Turn,
    messages: &[OutboxMessage],
    stop: &Stop,
    claim: Box<dyn Claim>,
    asked: Duration,
) -> Result<Published, StoreError> {
    let started = shared.clock.monotonic();
    let mut batch = Batch {
        shared,
        turn,
        messages,
        stop,
        started,
        proven: asked,
        just_verified: false,
        came_late: None,
        begun: 0,
        accepted: Vec::with_capacity(messages.len()),
        served: Vec::new(),
        refusals: Vec::new(),
    };
    let (claim, end) = match (&shared.outlet, shared.config.ordering) {
        (Outlet::Batch(publisher), _) => batch::publish_all(&mut batch, &**publisher, claim).await?,
        (Outlet::Single(publisher) | Outlet::Ordered(publisher), ordering) => match ordering {
            Ordering::Tenant => strict::publish_all(&mut batch, &**publisher, claim).await?,
            Ordering::Subject { in_flight } => {
                subject::publish_all(&mut batch, &**publisher, in_flight, claim).await?
            }
            Ordering::Pipelined { in_flight } => {
                pipelined::publish_all(&mut batch, &**publisher, in_flight, claim).await?
            }
        },
    };
    let end = end.unwrap_or_else(|| batch.clean());
    let Batch { accepted, served, refusals, .. } = batch;
    Ok(Published { claim, end, accepted, served, refusals })
}

/// The claim, and why the batch ended before its last message, if it did.
type Ended = (Box<dyn Claim>, Option<SweepEnd>);

/// Whether the next message may be begun.
enum Next {
    Go,
    /// The claim is to be verified first, when nothing is in flight.
    Verify,
    End(SweepEnd),
}

impl Batch<'_> {
    /// Asked before each message.
    fn next(&mut self) -> Next {
        if self.stop.requested() {
            return Next::End(SweepEnd::Interrupted);
        }
        if let Some(took) = self.came_late {
            return Next::End(self.proof_came_late(took));
        }
        let now = self.shared.clock.monotonic();
        if self.begun > 0 && now.saturating_sub(self.started) >= self.shared.config.max_batch_time {
            return Next::End(SweepEnd::OutOfTime);
        }
        let is_proven = now.saturating_sub(self.proven) < VERIFY_INTERVAL;
        if std::mem::take(&mut self.just_verified) || is_proven { Next::Go } else { Next::Verify }
    }

    /// Asked before each message where nothing is in flight then: verifies the claim, if that is due.
    async fn verified_next(
        &mut self,
        mut claim: Box<dyn Claim>,
    ) -> Result<(Box<dyn Claim>, Option<SweepEnd>), StoreError> {
        loop {
            match self.next() {
                Next::Go => return Ok((claim, None)),
                Next::Verify => claim = self.verify(claim).await?,
                Next::End(end) => return Ok((claim, Some(end))),
            }
        }
    }

    /// Asks whether the claim still lives. To be called when nothing is in flight: a claim that is given up while
    /// a message is on its way lets another relay publish beside it.
    async fn verify(&mut self, mut claim: Box<dyn Claim>) -> Result<Box<dyn Claim>, StoreError> {
        let (shared, accepted) = (self.shared, self.accepted.len());
        let operation = Operation::verify(shared.store.source(), &self.turn.tenant, accepted);
        let watch = shared.observers.start(&operation);
        let asked = shared.clock.monotonic();
        let answer = call(shared, StoreOperation::Verify, shared.config.store_timeout, async move {
            claim.verify().await?;
            Ok(claim)
        })
        .await;
        let took = shared.clock.monotonic().saturating_sub(asked);
        watch.end(&match &answer {
            Ok(_) => Outcome::Verified,
            Err(error) => Outcome::Failed(error),
        });
        self.proven = asked;
        self.came_late = Some(took).filter(|took| *took >= VERIFY_INTERVAL);
        self.just_verified = self.came_late.is_none();
        answer
    }

    /// The end of a batch whose claim lived when it was asked, which is too long ago. Asking once more might take as
    /// long: what was accepted is settled, and the rest waits for a database that answers.
    fn proof_came_late(&self, took: Duration) -> SweepEnd {
        let error = StoreError::transient(
            StoreOperation::Verify,
            format!(
                "the answer came after {} ms, and one that took {} ms or more is no proof that the claim still \
                 lives: the database is slow, or this process stood still",
                took.as_millis(),
                VERIFY_INTERVAL.as_millis()
            ),
        );
        SweepEnd::Failed { error, tried: self.turn.tried.filter(|_| self.begun == 0) }
    }

    /// The end of a batch that came to its last message.
    fn clean(&self) -> SweepEnd {
        // A batch that the byte bound cut short ends with the message that reached the bound.
        let bytes = || self.messages.iter().map(OutboxMessage::payload_len).sum::<usize>();
        let full = self.messages.len() >= self.turn.limit.get() as usize
            || bytes() >= self.shared.config.max_batch_bytes;
        let took = self.shared.clock.monotonic().saturating_sub(self.started);
        SweepEnd::Clean { full, took }
    }
}
