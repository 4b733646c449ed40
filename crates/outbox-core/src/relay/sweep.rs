//! One turn of one tenant: claim, publish, settle what was accepted.

use std::sync::Arc;

use super::deliver::{Published, deliver};
use super::shared::Shared;
use super::stop::Stop;
use super::store_call::call;
use super::turn::{Member, Refusal, Sweep, SweepEnd};
use crate::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, MessageId, Operation, Outcome, Settlement, Share, StoreError,
    StoreOperation, TenantId,
};

pub(super) async fn sweep(shared: &Arc<Shared>, member: Member, stop: &Stop) -> Sweep {
    if stop.requested() {
        return Sweep::nothing(SweepEnd::Interrupted);
    }
    let asked = shared.clock.monotonic();
    match claim(shared, &member).await {
        Ok(ClaimOutcome::Held) => Sweep::nothing(SweepEnd::Held),
        Err(error) => Sweep::nothing(SweepEnd::Failed { error, tried: member.tried }),
        Ok(ClaimOutcome::Claimed(claimed)) => {
            let Claimed { messages, claim, .. } = claimed;
            let tried = messages.first().map(|message| member.attempt(message));
            let claim_took = shared.clock.monotonic().saturating_sub(asked);
            let published = match deliver(shared, &member, &messages, stop, claim, asked).await {
                Ok(published) => published,
                Err(error) => return Sweep::nothing(SweepEnd::Failed { error, tried }),
            };
            let Published { claim, mut end, accepted, beyond, served, refusals } = published;
            if let SweepEnd::Clean { .. } | SweepEnd::OutOfTime = end
                && let Some(Refusal { tried, reason, .. }) = refusals.last().filter(|_| accepted.is_empty())
                && member.after_failure
            {
                // Nothing but refusals after a failure of the tenant: it is none of the subjects' own.
                end = SweepEnd::Refused { tried: *tried, reason: reason.clone() };
            }
            let settled = accepted.len();
            let (end, settled, served) = match settle(shared, &member.tenant, claim, accepted, beyond).await {
                Ok(()) => (end, settled, served),
                // Subjects that were refused are held back all the same.
                Err(error) => (SweepEnd::Failed { error, tried }, 0, Vec::new()),
            };
            Sweep { settled, end, refusals, served, claim_took }
        }
    }
}

async fn claim(shared: &Arc<Shared>, member: &Member) -> Result<ClaimOutcome, StoreError> {
    let request = ClaimRequest::new(member.tenant.clone(), member.limit)
        .with_max_bytes(shared.config.max_batch_bytes)
        .with_excluded_subjects(Arc::clone(&member.excluded))
        .with_timeout(shared.config.store_timeout);
    let tenants = [Share::of(&member.tenant, member.limit.get() as usize)];
    let operation = Operation::Claim { source: shared.store.source(), tenants: &tenants };
    let watch = shared.observers.start(&operation);
    let store = Arc::clone(&shared.store);
    let answer = call(shared, StoreOperation::Claim, shared.config.store_timeout, async move {
        store.claim(&request).await
    })
    .await;
    let handed_over = match &answer {
        Ok(ClaimOutcome::Claimed(claimed)) => claimed.messages.len(),
        _ => 0,
    };
    let tenants = [Share::of(&member.tenant, handed_over)];
    watch.end(&match &answer {
        Ok(ClaimOutcome::Held) => Outcome::Held,
        Ok(ClaimOutcome::Claimed(_)) => Outcome::Claimed { tenants: &tenants },
        Err(error) => Outcome::Failed(error),
    });
    answer
}

/// Marks what was accepted. If that is nothing, it only gives the tenant back. `beyond` counts messages that were accepted
/// behind a failure: they are not marked, and are published again.
async fn settle(
    shared: &Arc<Shared>,
    tenant: &TenantId,
    claim: Box<dyn Claim>,
    accepted: Vec<MessageId>,
    beyond: usize,
) -> Result<(), StoreError> {
    let marked = accepted.len();
    let tenants = [Share::of(tenant, marked + beyond)];
    let operation = Operation::Settle { source: shared.store.source(), tenants: &tenants };
    let watch = shared.observers.start(&operation);
    let settlement = Settlement::published(accepted);
    let answer = call(shared, StoreOperation::Settle, shared.config.store_timeout, async move {
        claim.settle(settlement).await
    })
    .await;
    let tenants = [Share::of(tenant, marked)];
    watch.end(&match &answer {
        Ok(()) => Outcome::Settled { tenants: &tenants },
        Err(error) => Outcome::Failed(error),
    });
    answer
}
