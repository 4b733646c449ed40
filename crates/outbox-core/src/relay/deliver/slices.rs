//! Slices of the batch, one at a time, to a publisher that takes several messages at once.

use super::batch::{Batch, Ended};
use super::message::{answer, in_time};
use crate::relay::shared::Shared;
use crate::relay::turn::{Member, SweepEnd};
use crate::text::with_causes;
use crate::{
    BatchPublisher, Claim, Delivery, Headers, Operation, OutboxMessage, Outcome, PublishError, RefusalCause,
    Slices, StoreError,
};

/// What is accepted is a prefix.
pub(super) async fn deliver(
    batch: &mut Batch<'_>,
    publisher: &dyn BatchPublisher,
    slices: Slices,
    mut claim: Box<dyn Claim>,
) -> Result<Ended, StoreError> {
    let mut rest = batch.messages;
    while !rest.is_empty() {
        let end;
        (claim, end) = batch.verified_next(claim).await?;
        if end.is_some() {
            return Ok((claim, end));
        }
        let (slice, later) = rest.split_at(slice_len(rest, slices));
        rest = later;
        batch.begun += slice.len();
        let (accepted, end) = publish_slice(batch, publisher, slice).await;
        batch.accepted.extend(slice.iter().take(accepted).map(|message| message.id));
        if end.is_some() {
            return Ok((claim, end));
        }
    }
    Ok((claim, None))
}

/// How many messages the next slice has: at least one.
fn slice_len(rest: &[OutboxMessage], slices: Slices) -> usize {
    let mut bytes = 0_usize;
    let fits = rest.iter().take(slices.max_messages).take_while(|message| {
        bytes = bytes.saturating_add(message.size());
        bytes <= slices.max_bytes
    });
    fits.count().max(1).min(rest.len())
}

/// How many messages of the slice are accepted, and why not all. Each has an observation of its own, which is not
/// entered: one future serves them all.
async fn publish_slice(
    batch: &Batch<'_>,
    publisher: &dyn BatchPublisher,
    slice: &[OutboxMessage],
) -> (usize, Option<SweepEnd>) {
    let (shared, member): (&Shared, &Member) = (batch.shared, batch.member);
    let source = shared.store.source();
    let attempts = |message| member.attempt(message).attempts;
    let mut watches = Vec::new();
    let mut headers: Vec<Headers> = Vec::new();
    if !shared.observers.is_empty() {
        for message in slice {
            let mut watch =
                shared.observers.start(&Operation::Publish { source, message, attempt: attempts(message) });
            let mut extended = message.headers.clone();
            watch.propagate(&mut extended);
            watches.push(watch);
            headers.push(extended);
        }
    }
    let extended = headers.iter().map(Some).chain(std::iter::repeat(None));
    let deliveries: Vec<Delivery<'_>> = slice
        .iter()
        .zip(extended)
        .map(|(message, extended)| {
            Delivery::new(source, message)
                .with_headers(extended.unwrap_or(&message.headers))
                .with_attempt(attempts(message))
        })
        .collect();

    let answer = answer(shared, &member.tenant, |poll| poll(), || publisher.publish_batch(&deliveries));
    let answer = in_time(shared, answer, batch.stop.abort()).await;
    let unknown = matches!(answer, Some(Err(_)));
    let (accepted, refusal): (usize, Option<(RefusalCause, PublishError)>) = match answer {
        Some(Ok(outcome)) => {
            let (accepted, refusal) = outcome.of(slice.len());
            (accepted, refusal.map(|error| (RefusalCause::Publisher(error.class()), error)))
        }
        Some(Err(no_answer)) => (0, Some(no_answer)),
        None => (0, None),
    };
    for (place, watch) in watches.into_iter().enumerate() {
        watch.end(&match &refusal {
            _ if place < accepted => Outcome::Accepted,
            Some((cause, error)) if place == accepted || unknown => Outcome::Refused { cause: *cause, error },
            // Behind the refused one, or dropped by a stop: nobody knows.
            _ => Outcome::Abandoned,
        });
    }
    let end = match (refusal, slice.get(accepted)) {
        (Some((_, error)), Some(message)) => {
            Some(SweepEnd::Refused { tried: member.attempt(message), reason: with_causes(&error) })
        }
        (None, Some(_)) => Some(SweepEnd::Interrupted),
        (_, None) => None,
    };
    (accepted, end)
}
