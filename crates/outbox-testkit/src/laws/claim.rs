//! The laws of `claim`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use outbox_core::{ClaimOutcome, NewMessage, OutboxMessage, StoreOperation};

use crate::trial::{claim, claim_outcome, ids, is_held, pending, request, settle, some, tenant};
use crate::{Capability, Trial};

/// A claim hands out the oldest unpublished messages, in id order, at most `limit`.
pub async fn claim_is_in_id_order_up_to_the_limit(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 12).await;
    let store = trial.store().await;
    for limit in [1_u8, 5, 12, 13] {
        let claimed = claim(&*store, &acme, limit.into()).await;
        assert_eq!(ids(&claimed), written[..written.len().min(limit.into())], "limit {limit}");
        settle(claimed, &[]).await;
    }
}

/// A claim hands out messages of its tenant, and of no other.
pub async fn claim_is_the_tenants_own(trial: Trial) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let rows: Vec<NewMessage> =
        some(&acme, 3).into_iter().zip(some(&globex, 3)).flat_map(|(a, g)| [a, g]).collect();
    let written = trial.commit(&rows).await;
    let store = trial.store().await;
    let claimed = claim(&*store, &acme, 10).await;
    assert_eq!(ids(&claimed), [written[0], written[2], written[4]]);
    assert!(claimed.messages.iter().all(|message| message.tenant_id == acme));
    settle(claimed, &[]).await;
}

/// A message is handed out while those before it have fewer bytes than `max_bytes`; so there is always at least one.
pub async fn claim_stops_at_max_bytes(trial: Trial) {
    let acme = tenant("acme");
    let rows: Vec<_> = (0..5)
        .map(|n| NewMessage::new(acme.clone(), "kind", format!("subject-{n}"), vec![7; 1_000]))
        .collect();
    let written = trial.commit(&rows).await;
    let store = trial.store().await;
    for (max_bytes, messages) in
        [(0, 1), (1, 1), (1_000, 1), (1_200, 2), (2_500, 3), (5_000, 5), (1 << 20, 5)]
    {
        let outcome = store.claim(&request(&acme, 10).with_max_bytes(max_bytes)).await;
        let Ok(ClaimOutcome::Claimed(claimed)) = outcome else { panic!("not claimed: {outcome:?}") };
        assert_eq!(ids(&claimed), written[..messages], "payloads of 1,000 bytes, at most {max_bytes}");
        settle(claimed, &[]).await;
    }
}

/// Whatever can be large counts for `max_bytes`, as large as it is when it is handed out and not as a database packs
/// it; and of a batch that ended there, the relay sees that it did.
pub async fn claim_counts_whatever_can_be_large(trial: Trial) {
    // A repeated letter is what databases pack best, and a header is JSON in them.
    let long = |bytes: usize| "x".repeat(bytes);
    let sort = |sort, kind: &str, subject: &str| NewMessage::tombstone(tenant(sort), kind, subject);
    let odd = "\u{1}\"\\".repeat(20_000);
    let sorts = [
        (NewMessage::new(tenant("payload"), "kind", "subject", long(200_000)), 200_000),
        (sort("headers", "kind", "subject").with_header("name", long(200_000)), 200_000),
        (sort("names of headers", "kind", "subject").with_header(long(60_000), "value"), 60_000),
        (sort("escaped headers", "kind", "subject").with_header("name", odd), 200_000),
        (sort("subject", "kind", &long(1_000)), 1_000),
        (sort("kind", &long(250), "subject"), 250),
    ];
    let store = trial.store().await;
    for (message, bytes) in sorts {
        let sort = message.tenant_id.clone();
        let rows = vec![message; 5];
        let written = trial.commit(&rows).await;
        let max_bytes = bytes * 5 / 2;
        let outcome = store.claim(&request(&sort, 10).with_max_bytes(max_bytes)).await;
        let Ok(ClaimOutcome::Claimed(claimed)) = outcome else { panic!("not claimed: {outcome:?}") };
        assert_eq!(ids(&claimed), written[..3], "{sort} of {bytes} bytes each, at most {max_bytes}");
        let size: usize = claimed.messages.iter().map(OutboxMessage::size).sum();
        assert!(size >= max_bytes, "{sort}: the batch was cut, and the relay takes it for the last one");
        settle(claimed, &[]).await;
    }
}

/// A tenant that is held by a claim is held for every other store, also for one of another process.
pub async fn claim_excludes_every_other_store(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (holder, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*holder, &acme, 10).await;
    assert_eq!(ids(&claimed), written);
    let second = claim_outcome(&*other, &acme, 10).await;
    assert!(matches!(second, ClaimOutcome::Held), "another store got the held tenant: {second:?}");
    settle(claimed, &[]).await;
}

/// A tenant that is held by a claim is held for the store that made it, too: claims do not nest.
pub async fn claim_excludes_its_own_store(trial: Trial) {
    let acme = tenant("acme");
    trial.commit_some(&acme, 2).await;
    let store = trial.store().await;
    let claimed = claim(&*store, &acme, 10).await;
    for _ in 0..5 {
        assert!(is_held(&*store, &acme).await, "the store got a tenant twice");
    }
    settle(claimed, &[]).await;
    settle(claim(&*store, &acme, 10).await, &[]).await;
}

/// A claim on a held tenant says so at once, however often it is asked; it never waits for the holder.
pub async fn claim_never_waits_for_the_holder(trial: Trial) {
    let acme = tenant("acme");
    trial.commit_some(&acme, 2).await;
    let (holder, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*holder, &acme, 10).await;
    for _ in 0..20 {
        assert!(trial.at_once("a claim on a held tenant", is_held(&*other, &acme)).await);
    }
    settle(claimed, &[]).await;
}

/// A tenant that has nothing pending can be claimed: its claim hands out nothing and excludes others.
pub async fn claim_holds_an_empty_tenant(trial: Trial) {
    let acme = tenant("acme");
    let (holder, other) = (trial.store().await, trial.store().await);
    let claimed = claim(&*holder, &acme, 10).await;
    assert!(claimed.messages.is_empty());
    assert!(trial.at_once("a claim on a held, empty tenant", is_held(&*other, &acme)).await);
    settle(claimed, &[]).await;
}

/// Claims of different tenants do not exclude each other, in one store or in several.
pub async fn claims_of_other_tenants_are_not_excluded(trial: Trial) {
    let tenants: Vec<_> = (0..6).map(|n| tenant(&format!("tenant-{n}"))).collect();
    for tenant in &tenants {
        trial.commit_some(tenant, 1).await;
    }
    let stores = [trial.store().await, trial.store().await, trial.store().await];
    let mut held = Vec::new();
    for (n, tenant) in tenants.iter().enumerate() {
        held.push(claim(&*stores[n % 3], tenant, 10).await);
    }
    for claimed in held {
        let all = ids(&claimed);
        settle(claimed, &all).await;
    }
}

/// A store holds as many claims at once as it says, and gives them all back.
pub async fn claims_up_to_max_claims_are_held_at_once(trial: Trial) {
    let store = trial.store().await;
    let claims = store.max_claims().map_or(16, |max| max.get().min(16));
    for round in 0..2 {
        let mut held = Vec::new();
        for n in 0..claims {
            let what = format!("claim {} of {claims}, round {round}", n + 1);
            let tenant = tenant(&format!("tenant-{n}"));
            held.push(trial.at_once(&what, claim(&*store, &tenant, 10)).await);
        }
        for claimed in held {
            settle(claimed, &[]).await;
        }
    }
}

/// Two outbox tables in one database do not exclude each other, and do not see each other's rows.
pub async fn claims_of_another_table_are_not_excluded(trial: Trial) {
    let another = trial.harness().another_table().await;
    let Some(another) = trial.can(Capability::AnotherTable, another) else { return };
    let acme = tenant("acme");
    let another = trial.beside(another);
    let written = trial.commit_some(&acme, 2).await;
    let (here, there) = (trial.store().await, another.store().await);
    let claimed = claim(&*here, &acme, 10).await;
    let other = claim(&*there, &acme, 10).await;
    assert_eq!((ids(&claimed), ids(&other)), (written, Vec::new()));
    settle(claimed, &[]).await;
    settle(other, &[]).await;
    drop((here, there));
    another.close().await;
}

/// `verify` answers that a claim lives, as often as it is asked, and neither marks nor gives back.
pub async fn verify_says_that_a_claim_lives(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let (holder, other) = (trial.store().await, trial.store().await);
    let mut claimed = claim(&*holder, &acme, 10).await;
    for _ in 0..3 {
        claimed.claim.verify().await.expect("the claim lives");
        assert!(is_held(&*other, &acme).await, "verify gave the tenant back");
    }
    assert_eq!(pending(&*other, &acme).await, written, "verify marked something");
    settle(claimed, &written).await;
}

/// However many replicas and tasks race for a tenant, there is never more than one holder.
pub async fn claim_has_one_holder_under_contention(trial: Trial) {
    let acme = tenant("acme");
    trial.commit_some(&acme, 1).await;
    let holders = Arc::new(AtomicU32::new(0));
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let store = trial.store().await;
        for _ in 0..2 {
            let (store, acme, holders) = (Arc::clone(&store), acme.clone(), Arc::clone(&holders));
            tasks.push(tokio::spawn(async move {
                for _ in 0..30 {
                    if let ClaimOutcome::Claimed(claimed) = claim_outcome(&*store, &acme, 1).await {
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two holders at once");
                        tokio::task::yield_now().await;
                        holders.fetch_sub(1, Ordering::SeqCst);
                        settle(claimed, &[]).await;
                    }
                }
            }));
        }
    }
    for task in tasks {
        crate::trial::joined(task.await);
    }
}

/// What a claim hands out was unmarked after the claim was taken: replicas that hand a tenant to each other
/// never get a message that the previous holder marked, whatever the server's default isolation.
pub async fn claim_never_hands_out_what_was_marked(trial: Trial) {
    let acme = tenant("acme");
    // In turns: the next holder has seen the tenant held before it gets it.
    let stores = [trial.store().await, trial.store().await];
    for round in 0..20 {
        let written = trial.commit_some(&acme, 2).await;
        let (holder, next) = (&stores[round % 2], &stores[(round + 1) % 2]);
        let claimed = claim(&**holder, &acme, 10).await;
        assert_eq!(ids(&claimed), written, "round {round}");
        assert!(is_held(&**next, &acme).await);
        settle(claimed, &written).await;
        let claimed = claim(&**next, &acme, 10).await;
        assert_eq!(ids(&claimed), [], "round {round}: the previous holder marked these");
        settle(claimed, &[]).await;
    }
    // In a race.
    let written = trial.commit_some(&acme, 120).await;
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let (store, acme) = (trial.store().await, acme.clone());
        tasks.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                match claim_outcome(&*store, &acme, 3).await {
                    ClaimOutcome::Claimed(claimed) => {
                        let batch = ids(&claimed);
                        settle(claimed, &batch).await;
                        if batch.is_empty() {
                            return seen;
                        }
                        seen.extend(batch);
                    }
                    _ => tokio::task::yield_now().await,
                }
            }
        }));
    }
    let mut seen = Vec::new();
    for task in tasks {
        seen.extend(crate::trial::joined(task.await));
    }
    seen.sort_unstable();
    assert_eq!(seen, written, "each message is handed out once and marked");
}

/// A store that cannot mark does not claim: on a read-only server the claim itself fails.
pub async fn claim_fails_where_it_cannot_mark(trial: Trial) {
    let acme = tenant("acme");
    trial.commit_some(&acme, 1).await;
    let read_only = trial.harness().set_read_only().await;
    let Some(()) = trial.can(Capability::ReadOnly, read_only) else { return };
    let store = trial.store().await;
    match store.claim(&request(&acme, 10)).await {
        Err(error) => assert_eq!(error.operation(), StoreOperation::Claim),
        Ok(outcome) => panic!("a claim on a read-only server must fail, not answer {outcome:?}"),
    }
}
