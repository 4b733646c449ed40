//! One message of the tenant at a time, by id.

use super::batch::{Batch, Ended};
use super::message::{Published, publish};
use crate::relay::turn::SweepEnd;
use crate::text::with_causes;
use crate::{Claim, Publisher, StoreError};

/// What is accepted is a prefix.
pub(super) async fn deliver(
    batch: &mut Batch<'_>,
    publisher: &dyn Publisher,
    mut claim: Box<dyn Claim>,
) -> Result<Ended, StoreError> {
    for message in batch.messages {
        let end;
        (claim, end) = batch.verified_next(claim).await?;
        if end.is_some() {
            return Ok((claim, end));
        }
        batch.begun += 1;
        let tried = batch.member.attempt(message);
        match publish(batch.shared, publisher, message, tried.attempts, batch.stop.abort()).await {
            Published::Accepted => batch.accepted.push(message.id),
            Published::Refused(error) => {
                return Ok((claim, Some(SweepEnd::Refused { tried, reason: with_causes(&error) })));
            }
            Published::Dropped => return Ok((claim, Some(SweepEnd::Interrupted))),
        }
    }
    Ok((claim, None))
}
