//! A claimed batch to the publisher, in the shape that is asked for: one file each.

mod batch;
mod by_subject;
mod in_order;
mod message;
mod pipelined;
mod slices;

use std::sync::Arc;
use std::time::Duration;

use self::batch::Batch;
use super::shared::Shared;
use super::stop::Stop;
use super::turn::{Member, Refusal, SweepEnd};
use crate::publishing::Shape;
use crate::{Claim, MessageId, OutboxMessage, StoreError};

/// What was published of a batch.
pub(super) struct Published {
    pub(super) claim: Box<dyn Claim>,
    pub(super) end: SweepEnd,
    /// What is to be marked, in id order.
    pub(super) accepted: Vec<MessageId>,
    /// How many more were accepted behind a failure, and come again.
    pub(super) beyond: usize,
    pub(super) served: Vec<String>,
    pub(super) refusals: Vec<Refusal>,
}

/// Publishes until the batch ends, the time is up, a stop is asked for, or a refusal ends it. It answers an
/// error if the claim does not live any more, or if the store cannot say that it does. Nothing is in flight when it answers.
/// The claim was asked for at `asked`.
pub(super) async fn deliver(
    shared: &Arc<Shared>,
    member: &Member,
    messages: &[OutboxMessage],
    stop: &Stop,
    claim: Box<dyn Claim>,
    asked: Duration,
) -> Result<Published, StoreError> {
    let mut batch = Batch::new(shared, member, messages, stop, asked);
    let (claim, end) = match &shared.publishing.0 {
        Shape::InOrder(publisher) => in_order::deliver(&mut batch, &**publisher, claim).await?,
        Shape::BySubject { publisher, in_flight } => {
            by_subject::deliver(&mut batch, &**publisher, *in_flight, claim).await?
        }
        Shape::Pipelined { publisher, in_flight } => {
            pipelined::deliver(&mut batch, &**publisher, *in_flight, claim).await?
        }
        Shape::InSlices { publisher, slices } => {
            slices::deliver(&mut batch, &**publisher, *slices, claim).await?
        }
    };
    let end = end.unwrap_or_else(|| batch.clean());
    let Batch { accepted, beyond, served, refusals, .. } = batch;
    Ok(Published { claim, end, accepted, beyond, served, refusals })
}
