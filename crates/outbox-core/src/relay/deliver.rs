//! A claimed batch to the publisher, by its ordering: one file each.

mod batch;
mod by_subject;
mod in_order;
mod message;
mod pipelined;
mod slices;

use std::sync::Arc;
use std::time::Duration;

use self::batch::Batch;
use super::shared::{Outlet, Shared};
use super::stop::Stop;
use super::turn::{Member, Refusal, SweepEnd};
use crate::{Claim, MessageId, Ordering, OutboxMessage, StoreError};

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
pub(super) async fn deliver(
    shared: &Arc<Shared>,
    member: &Member,
    messages: &[OutboxMessage],
    stop: &Stop,
    claim: Box<dyn Claim>,
    asked: Duration,
) -> Result<Published, StoreError> {
    let mut batch = Batch::new(shared, member, messages, stop, asked);
    let (claim, end) = match (&shared.outlet, shared.config.ordering) {
        (Outlet::Batch(publisher), _) => slices::deliver(&mut batch, &**publisher, claim).await?,
        (Outlet::Single(publisher) | Outlet::Ordered(publisher), ordering) => match ordering {
            Ordering::Tenant => in_order::deliver(&mut batch, &**publisher, claim).await?,
            Ordering::Subject { in_flight } => {
                by_subject::deliver(&mut batch, &**publisher, in_flight, claim).await?
            }
            Ordering::Pipelined { in_flight } => {
                pipelined::deliver(&mut batch, &**publisher, in_flight, claim).await?
            }
        },
    };
    let end = end.unwrap_or_else(|| batch.clean());
    let Batch { accepted, served, refusals, .. } = batch;
    Ok(Published { claim, end, accepted, served, refusals })
}
