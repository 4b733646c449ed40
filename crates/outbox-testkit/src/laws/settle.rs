//! The laws of `settle`.

use outbox_core::{MessageId, Settlement, StoreOperation};

use crate::Trial;
use crate::trial::{claim, ids, is_held, named, pending, probe, settle, tenant};

/// A settlement marks exactly the ids that it is given, a prefix of the batch or not, and only those.
pub async fn settle_marks_exactly_what_it_is_given(trial: Trial) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let written = trial.commit_some(&acme, 6).await;
    let others = trial.commit_some(&globex, 2).await;
    let (store, other) = (trial.store().await, trial.store().await);
    settle(claim(&*store, &acme, 4).await, &written[..1]).await;
    assert_eq!(pending(&*other, &acme).await, written[1..], "a prefix");
    settle(claim(&*store, &acme, 4).await, &[written[3], written[1]]).await;
    let rest = [written[2], written[4], written[5]];
    assert_eq!(pending(&*other, &acme).await, rest, "no prefix, in no order");
    let claimed = claim(&*other, &acme, 10).await;
    assert_eq!(ids(&claimed), rest, "what is left over comes first");
    settle(claimed, &rest).await;
    assert!(pending(&*store, &acme).await.is_empty());
    assert!(probe(&*store, named([&acme])).await.is_empty());
    assert_eq!(pending(&*store, &globex).await, others, "another tenant's messages");
}

/// A settlement gives the tenant back, at once.
pub async fn settle_frees_the_tenant(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 3).await;
    let (store, other) = (trial.store().await, trial.store().await);
    for id in written {
        settle(claim(&*store, &acme, 10).await, &[id]).await;
        assert!(!is_held(&*other, &acme).await, "a settled tenant is still held");
    }
}

/// An empty settlement only gives the tenant back.
pub async fn settle_of_nothing_marks_nothing(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 3).await;
    let (store, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*store, &acme, 2).await;
    claimed.claim.settle(Settlement::release()).await.expect("an empty settlement");
    assert_eq!(pending(&*other, &acme).await, written);
    settle(claim(&*other, &acme, 2).await, &[]).await;
}

/// A settlement with an id that the claim did not hand out is refused: nothing of it is marked, and the
/// tenant is free.
pub async fn settle_refuses_a_foreign_id(trial: Trial) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let written = trial.commit_some(&acme, 3).await;
    let others = trial.commit_some(&globex, 1).await;
    let store = trial.store().await;
    let foreign = [
        ("a pending message beyond the batch", written[2]),
        ("another tenant's message", others[0]),
        ("a message that does not exist", MessageId::new(i64::MAX)),
    ];
    for (what, id) in foreign {
        let claimed = claim(&*store, &acme, 2).await;
        let settled = claimed.claim.settle(Settlement::published([written[0], id])).await;
        let error = settled.expect_err(what);
        assert_eq!(error.operation(), StoreOperation::Settle);
        assert_eq!(pending(&*store, &acme).await, written, "{what}: something was marked");
        assert_eq!(pending(&*store, &globex).await, others, "{what}: another tenant's was marked");
        settle(trial.claim_freed(&*store, &acme, "a refused settlement").await, &[]).await;
    }
}

/// What was marked by an earlier claim is foreign to a later one.
pub async fn settle_refuses_what_an_earlier_claim_marked(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 3).await;
    let store = trial.store().await;
    settle(claim(&*store, &acme, 10).await, &written[..1]).await;
    let claimed = claim(&*store, &acme, 10).await;
    let settled = claimed.claim.settle(Settlement::published(written[..2].iter().copied())).await;
    settled.expect_err("a message that was marked before this claim");
    assert_eq!(pending(&*store, &acme).await, written[1..], "something was marked");
}
