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

/// A holder that lost its session must notice: the claim is verified between messages at least this often.
const VERIFY_INTERVAL: Duration = Duration::from_secs(1);

/// A claimed batch, while it is published.
pub(super) struct Batch<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) turn: &'a Turn,
    pub(super) messages: &'a [OutboxMessage],
    stop: &'a Stop,
    /// A batch's time is that of its publishing: a slow claim makes it no smaller.
    started: Duration,
    verified: Duration,
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
/// that does not live any more, or that cannot be told to. Nothing is in flight when it answers.
pub(super) async fn publish_all(
    shared: &Arc<Shared>,
    turn: &Turn,
    messages: &[OutboxMessage],
    stop: &Stop,
    claim: Box<dyn Claim>,
) -> Result<Published, StoreError> {
    let started = shared.clock.monotonic();
    let mut batch = Batch {
        shared,
        turn,
        messages,
        stop,
        started,
        verified: started,
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
    fn next(&self) -> Next {
        if self.stop.requested() {
            return Next::End(SweepEnd::Interrupted);
        }
        let now = self.shared.clock.monotonic();
        if self.begun > 0 && now.saturating_sub(self.started) >= self.shared.config.max_batch_time {
            return Next::End(SweepEnd::OutOfTime);
        }
        if now.saturating_sub(self.verified) >= VERIFY_INTERVAL { Next::Verify } else { Next::Go }
    }

    /// Asks whether the claim still lives. To be called when nothing is in flight: a claim that is given up while
    /// a message is on its way lets another relay publish beside it.
    async fn verify(&mut self, mut claim: Box<dyn Claim>) -> Result<Box<dyn Claim>, StoreError> {
        let (shared, accepted) = (self.shared, self.accepted.len());
        let operation = Operation::verify(shared.store.source(), &self.turn.tenant, accepted);
        let watch = shared.observers.start(&operation);
        let answer = call(shared, StoreOperation::Verify, shared.config.store_timeout, async move {
            claim.verify().await?;
            Ok(claim)
        })
        .await;
        watch.end(&match &answer {
            Ok(_) => Outcome::Verified,
            Err(error) => Outcome::Failed(error),
        });
        self.verified = shared.clock.monotonic();
        answer
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
