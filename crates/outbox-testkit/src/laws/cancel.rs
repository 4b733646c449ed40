//! The laws of futures that are dropped before they end, at every await there is.

use std::sync::Arc;

use outbox_core::{ClaimOutcome, ProbeRequest, Settlement, Tenants};

use crate::cut::Cut;
use crate::trial::{claim, first_pending, ids, message, pending, request, settle, tenant};
use crate::{Capability, Leftovers, Trial};

/// A claim's future that is dropped at any await frees the tenant and marks nothing.
pub async fn cancelled_claim_frees_the_tenant(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let request = request(&acme, 10);
    let mut cut = Cut::new();
    for _ in 0..cancellations(&trial) {
        let outcome = cut.cut(store.claim(&request)).await;
        if let Some(Ok(ClaimOutcome::Claimed(claimed))) = outcome {
            settle(claimed, &[]).await;
        }
        let again = trial.claim_freed(&*other, &acme, "a claim's future was dropped").await;
        assert_eq!(ids(&again), written);
        settle(again, &[]).await;
    }
}

/// A settlement's future that is dropped at any await marks all that it was given or nothing, and nothing
/// any more once the tenant is free.
pub async fn cancelled_settle_marks_all_or_nothing(trial: Trial) {
    let acme = tenant("acme");
    let (store, other) = (trial.store().await, trial.store().await);
    let mut cut = Cut::new();
    for round in 0..cancellations(&trial) {
        let written = trial.commit_some(&acme, 3).await;
        let claimed = claim(&*store, &acme, 10).await;
        let settlement = Settlement::published(written[..2].iter().copied());
        let settled = cut.cut(claimed.claim.settle(settlement)).await;
        let again = trial.claim_freed(&*other, &acme, "a settlement's future was dropped").await;
        let batch = ids(&again);
        match settled {
            Some(Ok(())) => assert_eq!(batch, written[2..], "it was settled, in round {round}"),
            _ => assert!(batch == written || batch == written[2..], "half of it was marked: {batch:?}"),
        }
        tokio::task::yield_now().await;
        assert_eq!(pending(&*store, &acme).await, batch, "marked after the tenant was free");
        settle(again, &batch).await;
    }
}

/// Futures of `verify`, `pending` and `probe` that are dropped at any await change nothing; the store goes
/// on working.
pub async fn cancelled_reads_change_nothing(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let probe = ProbeRequest::new(Tenants::Named(Arc::from([acme.clone()])));
    let mut cut = Cut::new();
    for _ in 0..cancellations(&trial) {
        let _ = cut.cut(store.pending(&first_pending(&acme, 10))).await;
        let _ = cut.cut(store.probe(&probe)).await;
        let mut claimed = trial.claim_freed(&*store, &acme, "a verification's future was dropped").await;
        let _ = cut.cut(claimed.claim.verify()).await;
        drop(claimed);
    }
    let again = trial.claim_freed(&*other, &acme, "reads were dropped").await;
    assert_eq!(ids(&again), written);
    settle(again, &written).await;
    assert!(pending(&*store, &acme).await.is_empty());
}

/// Futures dropped at random awaits leave no transaction, lock or connection over, and what is written
/// afterwards is really there.
pub async fn cancelled_futures_leave_nothing_over(trial: Trial) {
    let acme = tenant("acme");
    let (store, other) = (trial.store().await, trial.store().await);
    let mut left = trial.commit(&[message(&acme, 0)]).await;
    let mut cut = Cut::new();
    let request = request(&acme, 10);
    for _ in 0..cancellations(&trial) {
        match cut.cut(store.claim(&request)).await {
            Some(Ok(ClaimOutcome::Claimed(mut claimed))) => {
                let _ = cut.cut(claimed.claim.verify()).await;
                let _ = cut.cut(claimed.claim.settle(Settlement::release())).await;
            }
            Some(Ok(_)) | None => {}
            Some(Err(error)) => panic!("a claim failed: {}", crate::trial::chain(&error)),
        }
    }
    let leftovers = trial.leftovers().await;
    if let Some(leftovers) = trial.can(Capability::CountLeftovers, leftovers) {
        assert_eq!(leftovers, Leftovers::NONE);
    }
    left.extend(trial.commit_some(&acme, 3).await);
    assert_eq!(pending(&*other, &acme).await, left, "what was committed afterwards is there");
    let again = trial.claim_freed(&*store, &acme, "futures were dropped").await;
    settle(again, &left).await;
    assert!(pending(&*other, &acme).await.is_empty());
}

/// How many futures a law drops: [`Harness::CANCELLATIONS`](crate::Harness::CANCELLATIONS), or what `OUTBOX_TEST_CANCELLATIONS` says.
fn cancellations(trial: &Trial) -> u32 {
    crate::conformance::number_from_env("OUTBOX_TEST_CANCELLATIONS").unwrap_or(trial.facts().cancellations)
}
