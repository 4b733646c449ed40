//! The laws of giving a tenant back without a settlement: drop, panic, another thread, a killed session.

use outbox_core::{Settlement, StoreOperation};

use crate::trial::{claim, ids, is_held, joined, pending, probe, settle, tenant};
use crate::{Capability, Leftovers, Trial};

/// A dropped claim frees its tenant for every other store, with no other call.
pub async fn dropped_claim_frees_the_tenant(trial: Trial) {
    let acme = tenant("acme");
    trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    for round in 0..10 {
        let (from, to) = if round % 2 == 0 { (&store, &other) } else { (&other, &store) };
        drop(trial.claim_freed(&**from, &acme, "the round before").await);
        settle(trial.claim_freed(&**to, &acme, "its claim was dropped").await, &[]).await;
    }
}

/// A dropped claim marks nothing.
pub async fn dropped_claim_marks_nothing(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let mut claimed = claim(&*store, &acme, 10).await;
    claimed.claim.verify().await.expect("the claim lives");
    drop(claimed);
    let again = trial.claim_freed(&*other, &acme, "its claim was dropped").await;
    assert_eq!(ids(&again), written, "what a dropped claim held is handed out again");
    assert_eq!(pending(&*store, &acme).await, written);
    settle(again, &[]).await;
}

/// A holder that panics frees the tenant, and marks nothing.
pub async fn panicking_holder_frees_the_tenant(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*store, &acme, 10).await;
    let task = tokio::spawn(async move {
        let _claimed = claimed;
        std::panic::panic_any("a holder panics, on purpose");
    });
    let error = task.await.expect_err("the task panics");
    let text = error.into_panic();
    assert_eq!(text.downcast_ref(), Some(&"a holder panics, on purpose"), "the drop panicked, too");
    let again = trial.claim_freed(&*other, &acme, "its holder panicked").await;
    assert_eq!(ids(&again), written);
    settle(again, &[]).await;
}

/// A claim may be dropped on a thread that has no runtime: the drop does not panic, and frees the tenant.
pub async fn claim_dropped_off_the_runtime_frees_the_tenant(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*store, &acme, 10).await;
    let thread = std::thread::spawn(move || drop(claimed));
    let dropped = tokio::task::spawn_blocking(move || thread.join()).await;
    joined(dropped).expect("the drop does not panic");
    let again = trial.claim_freed(&*other, &acme, "its claim was dropped on another thread").await;
    assert_eq!(ids(&again), written);
    settle(again, &[]).await;
}

/// A claim moves between tasks: it is taken in one, verified in another and settled in a third, while its
/// store is in use and after its store was dropped.
pub async fn claim_moves_between_tasks(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let taken = tokio::spawn(async move { claim(&*store, &tenant("acme"), 10).await });
    let mut claimed = joined(taken.await);
    let verified = tokio::spawn(async move { claimed.claim.verify().await.map(|()| claimed) });
    let claimed = joined(verified.await).expect("the claim lives in another task");
    assert!(is_held(&*other, &acme).await, "the claim outlives its store");
    let settled = tokio::spawn(async move { settle(claimed, &written).await });
    joined(settled.await);
    assert!(pending(&*other, &acme).await.is_empty());
}

/// A killed session frees its tenant, also for the store that lost it.
pub async fn killed_session_frees_the_tenant(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*store, &acme, 10).await;
    let killed = trial.harness().kill_sessions().await;
    let Some(()) = trial.can(Capability::KillSessions, killed) else { return };
    let again = trial.claim_freed(&*other, &acme, "its session was killed").await;
    assert_eq!(ids(&again), written);
    settle(again, &[]).await;
    settle(trial.claim_freed(&*store, &acme, "its own session was killed").await, &[]).await;
    drop(claimed);
    settle(claim(&*other, &acme, 10).await, &[]).await;
}

/// `verify` says that a claim is lost whose session was killed.
pub async fn killed_session_fails_verify(trial: Trial) {
    let acme = tenant("acme");
    trial.commit_some(&acme, 2).await;
    let store = trial.store().await;
    let mut claimed = claim(&*store, &acme, 10).await;
    let killed = trial.harness().kill_sessions().await;
    let Some(()) = trial.can(Capability::KillSessions, killed) else { return };
    for _ in 0..2 {
        let lost = claimed.claim.verify().await.expect_err("a claim whose session was killed");
        assert_eq!(lost.operation(), StoreOperation::Verify);
    }
}

/// A claim whose session was killed cannot mark: its settlement fails.
pub async fn killed_session_cannot_settle(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*store, &acme, 10).await;
    let killed = trial.harness().kill_sessions().await;
    let Some(()) = trial.can(Capability::KillSessions, killed) else { return };
    let again = trial.claim_freed(&*other, &acme, "its session was killed").await;
    let settled = claimed.claim.settle(Settlement::published(written.iter().copied())).await;
    assert_eq!(settled.expect_err("a lost claim").operation(), StoreOperation::Settle);
    assert_eq!(pending(&*other, &acme).await, written, "a lost claim marked something");
    assert!(is_held(&*store, &acme).await, "a lost claim gave back what another holds");
    settle(again, &[]).await;
}

/// Claims, held tenants, settlements, reads and drops leave no transaction, lock or connection over.
pub async fn nothing_is_left_over(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 3).await;
    let (store, other) = (trial.store().await, trial.store().await);
    for id in written {
        let claimed = claim(&*store, &acme, 10).await;
        for _ in 0..20 {
            assert!(is_held(&*other, &acme).await);
        }
        settle(claimed, &[id]).await;
        pending(&*other, &acme).await;
        probe(&*other, outbox_core::Tenants::Discovered).await;
        drop(claim(&*store, &acme, 10).await);
        let refused = trial.claim_freed(&*store, &acme, "its claim was dropped").await;
        let foreign = [outbox_core::MessageId::new(i64::MAX)];
        refused.claim.settle(Settlement::published(foreign)).await.expect_err("a foreign id");
        trial
            .claim_freed(&*store, &acme, "a refused settlement")
            .await
            .claim
            .settle(Settlement::release())
            .await
            .expect("an empty settlement");
    }
    let leftovers = trial.leftovers().await;
    if let Some(leftovers) = trial.can(Capability::CountLeftovers, leftovers) {
        assert_eq!(leftovers, Leftovers::NONE);
    }
    assert!(!store.source().is_empty());
}
