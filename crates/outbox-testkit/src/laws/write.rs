//! The laws of writes: ids, commit, rollback, and rows that cannot be read.

use outbox_core::{ClaimOutcome, MessageId, StoreOperation};

use crate::trial::{
    chain, claim, first_pending, ids, is_held, message, named, pending, probe, request, settle, some, tenant,
};
use crate::{Capability, Trial};

/// Many rows written at once get ids in the order given, whatever their tenants, and later rows higher ones.
pub async fn ids_are_in_the_order_of_the_rows(trial: Trial) {
    let tenants = [tenant("acme"), tenant("globex")];
    let rows: Vec<_> = (0..200).map(|n| message(&tenants[n % 2], n)).collect();
    let mut written = trial.commit(&rows).await;
    written.extend(trial.commit(&rows[..3]).await);
    assert!(written.is_sorted_by(|a, b| a < b), "ids rise: {written:?}");
    let store = trial.store().await;
    for (n, tenant) in tenants.iter().enumerate() {
        let messages = store.pending(&first_pending(tenant, 1_000)).await.expect("pending answers");
        let subjects: Vec<_> = messages.into_iter().take(100).map(|message| message.subject_id).collect();
        let expected: Vec<_> = rows.iter().skip(n).step_by(2).map(|row| row.subject_id.clone()).collect();
        assert_eq!(subjects, expected, "each id belongs to the row at its place");
    }
}

/// An id is never issued twice, also not when everything was settled, deleted and connected to anew.
pub async fn ids_are_never_issued_again(trial: Trial) {
    let acme = tenant("acme");
    let mut highest = None;
    let mut unsupported = None;
    for _ in 0..3 {
        let written = trial.commit_some(&acme, 3).await;
        assert!(written.first() > highest.as_ref(), "{written:?} are not higher than {highest:?}");
        highest = written.last().copied();
        let store = trial.store().await;
        settle(claim(&*store, &acme, 10).await, &written).await;
        unsupported = trial.harness().delete_published().await.err();
    }
    trial.can(Capability::DeletePublished, unsupported.map_or(Ok(()), Err));
}

/// A row is not seen before its transaction commits; then all of its rows are.
pub async fn uncommitted_write_is_not_seen(trial: Trial) {
    let acme = tenant("acme");
    let store = trial.store().await;
    let write = trial.harness().write(&some(&acme, 3)).await;
    let written = write.ids().to_vec();
    assert!(pending(&*store, &acme).await.is_empty(), "pending saw an open transaction's rows");
    assert!(probe(&*store, named([&acme])).await.is_empty(), "the probe saw an open transaction's rows");
    write.commit().await;
    assert_eq!(pending(&*store, &acme).await, written);
}

/// A row whose transaction rolls back is never seen, and holds nothing up.
pub async fn rolled_back_write_is_never_seen(trial: Trial) {
    let acme = tenant("acme");
    let store = trial.store().await;
    trial.harness().write(&some(&acme, 2)).await.rollback().await;
    let written = trial.commit_some(&acme, 2).await;
    drop(trial.harness().write(&some(&acme, 2)).await);
    let claimed = claim(&*store, &acme, 10).await;
    assert_eq!(ids(&claimed), written);
    settle(claimed, &written).await;
    assert!(pending(&*store, &acme).await.is_empty());
    assert!(probe(&*store, named([&acme])).await.is_empty());
}

/// A row that commits after higher ids were settled is found, handed out and marked: never skipped.
pub async fn late_commit_is_found(trial: Trial) {
    let acme = tenant("acme");
    let store = trial.store().await;
    let late = trial.harness().write(&some(&acme, 1)).await;
    let beside = trial.harness().write_beside(&some(&acme, 2)).await;
    let Some(early) = trial.can(Capability::OverlappingWrites, beside) else { return };
    let (low, high) = (late.ids().to_vec(), early.ids().to_vec());
    assert!(low < high, "ids are drawn when the row is written");
    early.commit().await;
    settle(claim(&*store, &acme, 10).await, &high).await;
    late.commit().await;
    assert_eq!(probe(&*store, named([&acme])).await[0].id, low[0], "the probe skips a late commit");
    let claimed = claim(&*store, &acme, 10).await;
    assert_eq!(ids(&claimed), low, "the claim skips a late commit");
    settle(claimed, &low).await;
}

/// A row that cannot be read stops its own tenant, with an error that names the row; the tenant stays free,
/// and other tenants go on.
pub async fn hostile_row_stops_its_tenant_only(trial: Trial) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let hostile = trial.harness().write_hostile(&acme).await;
    let Some(hostile) = trial.can(Capability::HostileRow, hostile) else { return };
    trial.commit_some(&acme, 2).await;
    let written = trial.commit_some(&globex, 2).await;
    let store = trial.store().await;
    for _ in 0..3 {
        let error = trial.claim_fails(&*store, &request(&acme, 10), "the oldest row cannot be read").await;
        names_the_row(&error, hostile);
        assert_eq!(error.operation(), StoreOperation::Claim);
        let error = store.pending(&first_pending(&acme, 10)).await.expect_err("a row that cannot be read");
        names_the_row(&error, hostile);
    }
    let claimed = claim(&*store, &globex, 10).await;
    assert_eq!(ids(&claimed), written);
    settle(claimed, &written).await;
}

/// A later row that cannot be read ends the batch before it: what is older goes out.
pub async fn hostile_row_ends_the_batch_before_it(trial: Trial) {
    let acme = tenant("acme");
    let written = trial.commit_some(&acme, 2).await;
    let hostile = trial.harness().write_hostile(&acme).await;
    let Some(hostile) = trial.can(Capability::HostileRow, hostile) else { return };
    trial.commit_some(&acme, 2).await;
    let store = trial.store().await;
    let claimed = claim(&*store, &acme, 10).await;
    assert_eq!(ids(&claimed), written, "what is older than the row that cannot be read");
    settle(claimed, &written).await;
    match store.claim(&request(&acme, 10)).await {
        Err(error) => names_the_row(&error, hostile),
        Ok(ClaimOutcome::Held) => panic!("the tenant was not given back"),
        Ok(outcome) => panic!("a row that cannot be read was handed out: {outcome:?}"),
    }
    assert!(!is_held(&*store, &tenant("globex")).await);
}

/// A probe answers about a row whose time cannot be read, and about every other tenant.
pub async fn hostile_row_is_probed(trial: Trial) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let hostile = trial.harness().write_hostile(&acme).await;
    let Some(hostile) = trial.can(Capability::HostileRow, hostile) else { return };
    let written = trial.commit_some(&globex, 1).await;
    let store = trial.store().await;
    for tenants in [named([&acme, &globex]), outbox_core::Tenants::Discovered] {
        let found: Vec<_> = probe(&*store, tenants).await.iter().map(|oldest| oldest.id).collect();
        assert_eq!(found, [hostile, written[0]]);
    }
}

/// Ids beyond 2^53, up to the last one, are read, handed out, compared and marked exactly.
pub async fn large_ids_are_exact(trial: Trial) {
    let acme = tenant("acme");
    let store = trial.store().await;
    for next in [(1 << 53) + 1, i64::MAX - 8] {
        let skipped = trial.harness().skip_ids(MessageId::new(next)).await;
        let Some(()) = trial.can(Capability::LargeIds, skipped) else { return };
        let written = trial.commit_some(&acme, 3).await;
        assert!(written[0].get() >= next, "the harness skips to {next}, not to {}", written[0]);
        assert_eq!(pending(&*store, &acme).await, written);
        assert_eq!(probe(&*store, named([&acme])).await[0].id, written[0]);
        settle(claim(&*store, &acme, 10).await, &written[1..2]).await;
        let claimed = claim(&*store, &acme, 10).await;
        assert_eq!(ids(&claimed), [written[0], written[2]]);
        settle(claimed, &[written[0], written[2]]).await;
    }
}

fn names_the_row(error: &outbox_core::StoreError, hostile: MessageId) {
    let line = chain(error);
    assert!(line.contains(&hostile.to_string()), "the error does not name row {hostile}: {line}");
}
