//! One message of each subject at a time, by id; different subjects at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::batch::{Batch, Ended, Next};
use super::message::{Published, publish};
use crate::relay::turn::{Refusal, SweepEnd};
use crate::text::with_causes;
use crate::{Claim, ClaimRequest, OutboxMessage, Publisher, StoreError};

/// What is accepted is any subset, of which each subject's part is a prefix. A subject whose message was refused
/// is held back for the rest of the batch.
pub(super) async fn deliver(
    batch: &mut Batch<'_>,
    publisher: &dyn Publisher,
    in_flight: usize,
    mut claim: Box<dyn Claim>,
) -> Result<Ended, StoreError> {
    let (shared, member, messages, stop) = (batch.shared, batch.member, batch.messages, batch.stop);
    let mut queues = Queues::of(messages);
    let mut running = FuturesUnordered::new();
    let mut end = None;
    loop {
        while end.is_none() && running.len() < in_flight && queues.is_ready() {
            match batch.next() {
                Next::End(why) => end = Some(why),
                Next::Verify if running.is_empty() => claim = batch.verify(claim).await?,
                Next::Verify => break,
                Next::Go => {
                    let Some((place, message)) =
                        queues.pop().and_then(|place| Some((place, messages.get(place)?)))
                    else {
                        break;
                    };
                    batch.begun += 1;
                    running.push(async move {
                        let tried = member.attempt(message);
                        let ended = publish(shared, publisher, message, tried.attempts, stop.abort()).await;
                        (place, message, tried, ended)
                    });
                }
            }
        }
        let Some((place, message, tried, ended)) = running.next().await else { break };
        match ended {
            Published::Accepted => {
                batch.accepted.push(message.id);
                if member.has_failed(&message.subject_id) && !batch.served.contains(&message.subject_id) {
                    batch.served.push(message.subject_id.clone());
                }
                queues.accepted(place);
            }
            Published::Refused(error) => {
                let reason = with_causes(&error);
                let progress = !queues.is_first(place);
                let too_many =
                    member.excluded.len() + batch.refusals.len() >= ClaimRequest::MAX_EXCLUDED_SUBJECTS;
                let too_long = message.subject_id.len() > ClaimRequest::MAX_EXCLUDED_SUBJECT_BYTES;
                if (too_many || too_long) && matches!(end, None | Some(SweepEnd::OutOfTime)) {
                    // More than a claim can leave out: the tenant waits, and not the subject alone.
                    end = Some(SweepEnd::Refused { tried, reason: reason.clone() });
                }
                if !too_long {
                    let subject = message.subject_id.clone();
                    batch.refusals.push(Refusal { subject, tried, reason, progress });
                }
            }
            Published::Dropped => end = Some(SweepEnd::Interrupted),
        }
    }
    batch.accepted.sort_unstable();
    Ok((claim, end))
}

/// The messages of a batch by subject. A message becomes ready when the one before it in its subject is accepted.
struct Queues {
    /// Each message's successor in its subject.
    successors: Vec<Option<usize>>,
    firsts: Vec<bool>,
    /// The places of those that may be begun; the lowest id comes first.
    ready: BinaryHeap<Reverse<usize>>,
}

impl Queues {
    fn of(messages: &[OutboxMessage]) -> Self {
        let mut successors = vec![None; messages.len()];
        let mut firsts = vec![false; messages.len()];
        let mut ready = BinaryHeap::new();
        let mut last: HashMap<&str, usize> = HashMap::new();
        for (place, message) in messages.iter().enumerate() {
            let before = last.insert(&message.subject_id, place);
            if let Some(successor) = before.and_then(|before| successors.get_mut(before)) {
                *successor = Some(place);
            } else {
                firsts.get_mut(place).into_iter().for_each(|first| *first = true);
                ready.push(Reverse(place));
            }
        }
        Self { successors, firsts, ready }
    }

    fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    fn pop(&mut self) -> Option<usize> {
        self.ready.pop().map(|Reverse(place)| place)
    }

    fn accepted(&mut self, place: usize) {
        let successor = self.successors.get(place).copied().flatten();
        self.ready.extend(successor.map(Reverse));
    }

    fn is_first(&self, place: usize) -> bool {
        self.firsts.get(place) == Some(&true)
    }
}
