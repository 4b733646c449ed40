//! A claimed batch, while it is published.

use std::sync::Arc;
use std::time::Duration;

use crate::relay::shared::Shared;
use crate::relay::stop::Stop;
use crate::relay::store_call::call;
use crate::relay::turn::{Member, Refusal, SweepEnd};
use crate::{Claim, MessageId, Operation, OutboxMessage, Outcome, Share, StoreError, StoreOperation};

/// How long a proof of the claim counts, from when it was asked for: nothing is begun on an older one. An answer
/// that was held up, by a slow database or a process that stood still, says nothing of the time since.
const VERIFY_INTERVAL: Duration = Duration::from_secs(1);

/// A claimed batch, while it is published.
pub(super) struct Batch<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) member: &'a Member,
    pub(super) messages: &'a [OutboxMessage],
    pub(super) stop: &'a Stop,
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
    pub(super) begun: usize,
    /// What is to be marked.
    pub(super) accepted: Vec<MessageId>,
    /// How many more were accepted behind a failure, and come again.
    pub(super) beyond: usize,
    /// Subjects that failed in an earlier turn and of which a message was accepted in this one.
    pub(super) served: Vec<String>,
    pub(super) refusals: Vec<Refusal>,
}

/// The claim, and why the batch ended before its last message, if it did.
pub(super) type Ended = (Box<dyn Claim>, Option<SweepEnd>);

/// Whether the next message may be begun.
pub(super) enum Next {
    Go,
    /// The claim is to be verified first, when nothing is in flight.
    Verify,
    End(SweepEnd),
}

impl<'a> Batch<'a> {
    /// Nothing of it is begun yet. Its claim was asked for at `asked`.
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        member: &'a Member,
        messages: &'a [OutboxMessage],
        stop: &'a Stop,
        asked: Duration,
    ) -> Self {
        let started = shared.clock.monotonic();
        let (accepted, served, refusals) = (Vec::with_capacity(messages.len()), Vec::new(), Vec::new());
        let (proven, just_verified, came_late, begun) = (asked, false, None, 0);
        Self {
            shared,
            member,
            messages,
            stop,
            started,
            proven,
            just_verified,
            came_late,
            begun,
            accepted,
            beyond: 0,
            served,
            refusals,
        }
    }

    /// Asked before each message.
    pub(super) fn next(&mut self) -> Next {
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
    pub(super) async fn verified_next(
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
    pub(super) async fn verify(&mut self, mut claim: Box<dyn Claim>) -> Result<Box<dyn Claim>, StoreError> {
        let shared = self.shared;
        let tenants = [Share::of(&self.member.tenant, self.accepted.len())];
        let operation = Operation::Verify { source: shared.store.source(), tenants: &tenants };
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
        SweepEnd::Failed { error, tried: self.member.tried.filter(|_| self.begun == 0) }
    }

    /// The end of a batch that came to its last message.
    pub(super) fn clean(&self) -> SweepEnd {
        // A batch that the byte bound cut short ends with the message that reached the bound.
        let bytes = || self.messages.iter().map(OutboxMessage::size).fold(0, usize::saturating_add);
        let full = self.messages.len() >= self.member.limit.get() as usize
            || bytes() >= self.shared.config.max_batch_bytes;
        let took = self.shared.clock.monotonic().saturating_sub(self.started);
        SweepEnd::Clean { full, took }
    }
}
