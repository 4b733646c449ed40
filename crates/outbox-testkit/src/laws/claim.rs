//! The laws of `claim`.

use crate::trial::{claim, claim_outcome, ids, tenant};
use crate::{Harness, Trial};
use outbox_core::ClaimOutcome;

/// A tenant that is held by a claim is held for every other store, also for one of another process.
pub async fn claim_excludes_every_other_store<H: Harness>(trial: Trial<H>) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (holder, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*holder, &acme, 10).await;
    assert_eq!(ids(&claimed), written);
    let second = claim_outcome(&*other, &acme, 10).await;
    assert!(matches!(second, ClaimOutcome::Held), "another store got the held tenant: {second:?}");
}
