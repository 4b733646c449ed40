//! The tenant's messages by id, several on their way at once, over one ordered connection.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::task::unconstrained;

use super::batch::{Batch, Ended, Next};
use super::message::{Published, publish};
use crate::relay::turn::SweepEnd;
use crate::text::with_causes;
use crate::{Claim, Publisher, StoreError};

/// Each future is polled before the next one is made: that is when its publisher sends it. What is accepted is
/// the prefix; what was accepted beyond a failure is published again.
pub(super) async fn deliver(
    batch: &mut Batch<'_>,
    publisher: &dyn Publisher,
    in_flight: usize,
    mut claim: Box<dyn Claim>,
) -> Result<Ended, StoreError> {
    let (shared, member, messages, stop) = (batch.shared, batch.member, batch.messages, batch.stop);
    let mut running = FuturesUnordered::new();
    let mut behind = Behind::default();
    let mut end = None;
    let mut failed = false;
    loop {
        while end.is_none() && !failed && running.len() < in_flight && batch.begun < messages.len() {
            match batch.next() {
                Next::End(why) => end = Some(why),
                Next::Verify if running.is_empty() => claim = batch.verify(claim).await?,
                Next::Verify => break,
                Next::Go => {
                    let place = batch.begun;
                    let Some(message) = messages.get(place) else { break };
                    batch.begun += 1;
                    let attempts = member.attempt(message).attempts;
                    // Without tokio's budget, which would make a first poll wait though there is room: that
                    // message would go out behind later ones.
                    let mut future = Box::pin(unconstrained(async move {
                        (place, publish(shared, publisher, message, attempts, stop.abort()).await)
                    }));
                    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
                        Poll::Ready((place, outcome)) => {
                            failed |= !matches!(outcome, Published::Accepted);
                            behind.ended(batch, place, outcome);
                        }
                        Poll::Pending => running.push(future),
                    }
                }
            }
        }
        let Some((place, outcome)) = running.next().await else { break };
        failed |= !matches!(outcome, Published::Accepted);
        behind.ended(batch, place, outcome);
    }
    // Nothing is in flight: every message that was begun has its end, and a failure is the first of those behind.
    batch.beyond = behind.0.values().filter(|outcome| matches!(outcome, Published::Accepted)).count();
    let end = match behind.0.pop_first() {
        Some((place, Published::Refused(error))) => messages.get(place).map(|message| {
            let (tried, reason) = (member.attempt(message), with_causes(&error));
            SweepEnd::Refused { tried, reason }
        }),
        Some((_, Published::Dropped)) => Some(SweepEnd::Interrupted),
        Some((_, Published::Accepted)) | None => end,
    };
    Ok((claim, end))
}

/// How the messages ended that follow no unbroken row of accepted ones, by their places.
#[derive(Default)]
struct Behind(BTreeMap<usize, Published>);

impl Behind {
    /// A message ended. What was accepted without a gap is to be marked.
    fn ended(&mut self, batch: &mut Batch<'_>, place: usize, outcome: Published) {
        self.0.insert(place, outcome);
        while let Some(message) = batch.messages.get(batch.accepted.len())
            && let Some(first) = self.0.first_entry()
            && *first.key() == batch.accepted.len()
            && matches!(first.get(), Published::Accepted)
        {
            first.remove();
            batch.accepted.push(message.id);
        }
    }
}
