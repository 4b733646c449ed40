//! The laws of a claim that leaves subjects out.

use outbox_core::{ClaimOutcome, ClaimRequest, Claimed, NewMessage, Settlement, Store, TenantId};

use super::data::ALIKE;
use crate::Trial;
use crate::trial::{chain, claim, ids, is_held, named, pending, probe, request, settle, tenant};

/// A claim leaves out the messages of the excluded subjects and hands out the oldest of the others, however
/// many rows are left out before them; only what is handed out counts for the limit and the bytes.
pub async fn excluded_subjects_are_left_out(trial: Trial) {
    let acme = tenant("acme");
    let mut rows: Vec<_> = (0..40).map(|_| about(&acme, "stuck")).collect();
    rows.extend(
        ["a", "stuck", "b", "b", "also stuck", "c", "stuck", "a"].map(|subject| about(&acme, subject)),
    );
    let written = trial.commit(&rows).await;
    let of = |picked: &[usize]| picked.iter().map(|place| written[*place]).collect::<Vec<_>>();
    let store = trial.store().await;
    for (excluded, limit, expected) in [
        (&["stuck", "also stuck"][..], 10, of(&[40, 42, 43, 45, 47])),
        (&["stuck", "also stuck"], 3, of(&[40, 42, 43])),
        (&["stuck"], 4, of(&[40, 42, 43, 44])),
        (&["also stuck", "a"], 3, of(&[0, 1, 2])),
        (&["stuck", "also stuck", "a", "b", "c"], 10, Vec::new()),
        (&["nobody"], 3, of(&[0, 1, 2])),
        (&[], 3, of(&[0, 1, 2])),
    ] {
        let claimed = claim_others(&*store, &request(&acme, limit), excluded).await;
        assert_eq!(ids(&claimed), expected, "without {excluded:?}, limit {limit}");
        settle(claimed, &[]).await;
    }
    // Each has about 20 bytes; those of the 40 at the head are not counted.
    for (max_bytes, messages) in [(1, 1), (10, 1), (30, 2)] {
        let request = request(&acme, 10).with_max_bytes(max_bytes);
        let claimed = claim_others(&*store, &request, &["stuck"]).await;
        assert_eq!(ids(&claimed), of(&[40, 42, 43])[..messages], "at most {max_bytes} bytes");
        settle(claimed, &[]).await;
    }
}

/// What a claim leaves out stays as it was: pending, seen by the probe, and refused by this claim's
/// settlement. The tenant is held all the same, whether anything was handed out or not.
pub async fn excluded_subjects_stay_as_they_are(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit(&["stuck", "a", "stuck", "a"].map(|subject| about(&acme, subject))).await;
    let (store, other) = (trial.store().await, trial.store().await);
    for excluded in [&["stuck"][..], &["stuck", "a"]] {
        let claimed = claim_others(&*store, &request(&acme, 10), excluded).await;
        assert!(is_held(&*other, &acme).await, "a claim without {excluded:?} does not hold the tenant");
        assert_eq!(pending(&*other, &acme).await, written);
        settle(claimed, &[]).await;
    }
    let claimed = claim_others(&*store, &request(&acme, 10), &["stuck"]).await;
    let settled = claimed.claim.settle(Settlement::published([written[2]])).await;
    settled.expect_err("a message that this claim left out");
    assert_eq!(pending(&*store, &acme).await, written, "something was marked");
    let claimed = trial.claim_freed(&*store, &acme, "a refused settlement").await;
    settle(claimed, &[]).await;
    settle(claim_others(&*store, &request(&acme, 10), &["stuck"]).await, &[written[1]]).await;
    let rest = [written[0], written[2], written[3]];
    assert_eq!(pending(&*other, &acme).await, rest);
    let oldest = probe(&*other, named([&acme])).await;
    assert_eq!(oldest.iter().map(|oldest| oldest.id).collect::<Vec<_>>(), [written[0]]);
    let claimed = claim(&*other, &acme, 10).await;
    assert_eq!(ids(&claimed), rest, "a claim that leaves nothing out");
    settle(claimed, &[]).await;
}

/// Excluded subjects compare by bytes, whatever is in them.
pub async fn excluded_subjects_compare_by_bytes(trial: Trial) {
    let acme = tenant("acme");
    let hostile = ["", "a,b", "{a}", "\"a\"", "a\"", "\\", "it's", "%", "_", "[1]", "two\nlines"];
    let subjects: Vec<_> = ALIKE.iter().copied().chain(hostile).collect();
    let rows: Vec<_> = subjects.iter().map(|subject| about(&acme, subject)).collect();
    let written = trial.commit(&rows).await;
    let store = trial.store().await;
    for (place, subject) in subjects.iter().enumerate() {
        let claimed = claim_others(&*store, &request(&acme, 100), &[subject]).await;
        let mut others = written.clone();
        others.remove(place);
        assert_eq!(ids(&claimed), others, "without {subject:?}");
        settle(claimed, &[]).await;
    }
    let claimed = claim_others(&*store, &request(&acme, 100), &subjects).await;
    assert_eq!(ids(&claimed), [], "without any");
    settle(claimed, &[]).await;
}

/// A claim leaves out as many subjects as a request may name.
pub async fn excluded_subjects_may_be_many(trial: Trial) {
    let acme = tenant("acme");
    let most = ClaimRequest::MAX_EXCLUDED_SUBJECTS;
    let subjects: Vec<_> = (0..=most).map(|number| format!("{number:0>60}")).collect();
    let rows: Vec<_> = subjects.iter().map(|subject| about(&acme, subject)).collect();
    let written = trial.commit(&rows).await;
    let store = trial.store().await;
    let excluded: Vec<_> = subjects.iter().map(String::as_str).take(most).collect();
    let claimed = claim_others(&*store, &request(&acme, 1_000), &excluded).await;
    assert_eq!(ids(&claimed), written[most..], "without {most} subjects");
    settle(claimed, &[]).await;
}

fn about(tenant: &TenantId, subject: &str) -> NewMessage {
    NewMessage::new(tenant.clone(), "kind", subject, "ten bytes.")
}

/// Claims a tenant that is free, without these subjects.
async fn claim_others(store: &dyn Store, request: &ClaimRequest, excluded: &[&str]) -> Claimed {
    let excluded: Vec<String> = excluded.iter().map(|subject| (*subject).to_owned()).collect();
    match store.claim(&request.clone().with_excluded_subjects(excluded)).await {
        Ok(ClaimOutcome::Claimed(claimed)) => claimed,
        Ok(outcome) => panic!("nobody holds {}, yet a claim answers {outcome:?}", request.tenant_id),
        Err(error) => panic!("a claim on {} failed: {}", request.tenant_id, chain(&error)),
    }
}
