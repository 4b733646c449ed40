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
    // How the messages ended that did not follow an unbroken row of accepted ones, by their places.
    let mut ended = BTreeMap::new();
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
                            ended.insert(place, outcome);
                        }
                        Poll::Pending => running.push(future),
                    }
                }
            }
        }
        let Some((place, outcome)) = running.next().await else { break };
        failed |= !matches!(outcome, Published::Accepted);
        ended.insert(place, outcome);
    }
    // Nothing is in flight: every message that was begun has its end.
    for (message, (_, outcome)) in messages.iter().zip(ended) {
        match outcome {
            Published::Accepted => batch.accepted.push(message.id),
            Published::Refused(error) => {
                let (tried, reason) = (member.attempt(message), with_causes(&error));
                return Ok((claim, Some(SweepEnd::Refused { tried, reason })));
            }
            Published::Dropped => return Ok((claim, Some(SweepEnd::Interrupted))),
        }
    }
    Ok((claim, end))
}
