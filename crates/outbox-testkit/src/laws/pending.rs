//! The laws of `pending`.

use crate::Trial;
use crate::trial::{claim, first_pending, is_held, named, pending, probe, settle, some, tenant};
use outbox_core::NewMessage;

/// `pending` answers the oldest unpublished messages, in id order, at most `limit`.
pub async fn pending_is_in_id_order_up_to_the_limit(trial: Trial) {
    let acme = tenant("acme");
    let store = trial.store().await;
    assert!(pending(&*store, &acme).await.is_empty(), "a tenant without messages has none pending");
    let ids = trial.commit_some(&acme, 12).await;
    for limit in [1, 5, 12, 13] {
        let answer = store.pending(&first_pending(&acme, limit)).await.expect("pending answers");
        let answer: Vec<_> = answer.iter().map(|message| message.id).collect();
        let expected = &ids[..ids.len().min(limit as usize)];
        assert_eq!(answer, expected, "the oldest {limit} messages, in id order");
    }
}

/// `pending` answers messages of the tenant that it is asked for, and of no other.
pub async fn pending_is_the_tenants_own(trial: Trial) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let rows: Vec<NewMessage> =
        some(&acme, 3).into_iter().zip(some(&globex, 3)).flat_map(|(a, g)| [a, g]).collect();
    let ids = trial.commit(&rows).await;
    let store = trial.store().await;
    assert_eq!(pending(&*store, &acme).await, [ids[0], ids[2], ids[4]]);
    assert_eq!(pending(&*store, &globex).await, [ids[1], ids[3], ids[5]]);
}

/// `pending` claims nothing: afterwards, the tenant is free for everybody.
pub async fn pending_claims_nothing(trial: Trial) {
    let acme = tenant("acme");
    trial.commit_some(&acme, 2).await;
    let (reader, other) = (trial.store().await, trial.store().await);
    pending(&*reader, &acme).await;
    assert!(!is_held(&*other, &acme).await, "pending took the tenant");
}

/// `pending` changes nothing: the same rows are pending afterwards, for everybody.
pub async fn pending_changes_nothing(trial: Trial) {
    let acme = tenant("acme");
    let ids = trial.commit_some(&acme, 3).await;
    let (reader, other) = (trial.store().await, trial.store().await);
    for _ in 0..3 {
        assert_eq!(pending(&*reader, &acme).await, ids);
    }
    assert_eq!(pending(&*other, &acme).await, ids);
    assert_eq!(probe(&*other, named([&acme])).await.len(), 1, "the probe still finds the tenant");
}

/// `pending` sees the same rows while another holds the claim, without waiting for it.
pub async fn pending_sees_through_a_claim(trial: Trial) {
    let acme = tenant("acme");
    let ids = trial.commit_some(&acme, 3).await;
    let (holder, reader) = (trial.store().await, trial.store().await);
    let claimed = claim(&*holder, &acme, 2).await;
    assert_eq!(trial.at_once("pending of a held tenant", pending(&*reader, &acme)).await, ids);
    settle(claimed, &ids[..1]).await;
    assert_eq!(pending(&*reader, &acme).await, ids[1..]);
}
