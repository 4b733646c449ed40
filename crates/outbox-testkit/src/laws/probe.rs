//! The laws of `probe`.

use std::time::Duration;

use outbox_core::{OldestPending, Tenants, Timestamp};

use crate::Trial;
use crate::trial::{claim, is_held, message, named, pending, probe, settle, tenant};

/// One probe answers each tenant that it is asked for and that has something pending: its lowest id and when
/// that message happened.
pub async fn probe_answers_each_tenants_oldest(trial: Trial) {
    let tenants = [tenant("acme"), tenant("globex"), tenant("initech")];
    let happened = |n: usize| Timestamp::from_micros(1_700_000_000_000_000 + i64::try_from(n).unwrap_or(0));
    let mut rows = Vec::new();
    for n in 0..3 {
        rows.extend(tenants.iter().map(|tenant| message(tenant, n)));
    }
    let rows: Vec<_> =
        rows.into_iter().enumerate().map(|(n, row)| row.with_occurred_at(happened(n))).collect();
    let ids = trial.commit(&rows).await;
    let store = trial.store().await;
    let answer = probe(&*store, named(&tenants)).await;
    let answer: Vec<_> =
        answer.into_iter().map(|o| (o.tenant_id, o.id, o.time.map(|t| t.occurred_at))).collect();
    let expected: Vec<_> =
        tenants.into_iter().enumerate().map(|(n, tenant)| (tenant, ids[n], Some(happened(n)))).collect();
    assert_eq!(answer, expected, "each tenant once, with its oldest message");
}

/// A tenant that has nothing pending is absent: one without rows, and one whose rows are all settled.
pub async fn probe_leaves_out_who_has_nothing(trial: Trial) {
    let (acme, settled, unknown) = (tenant("acme"), tenant("settled"), tenant("unknown"));
    trial.commit_some(&acme, 1).await;
    let ids = trial.commit_some(&settled, 2).await;
    let store = trial.store().await;
    let claimed = claim(&*store, &settled, 10).await;
    settle(claimed, &ids).await;
    assert_eq!(tenants_of(probe(&*store, named([&acme, &settled, &unknown])).await), ["acme"]);
}

/// A probe of named tenants answers about no other tenant.
pub async fn probe_answers_only_who_was_asked_for(trial: Trial) {
    let tenants: Vec<_> = ["a", "b", "c", "d"].into_iter().map(tenant).collect();
    for tenant in &tenants {
        trial.commit_some(tenant, 1).await;
    }
    let store = trial.store().await;
    assert_eq!(tenants_of(probe(&*store, named([&tenants[1], &tenants[3]])).await), ["b", "d"]);
    assert!(probe(&*store, named([])).await.is_empty(), "a probe of nobody answers nothing");
}

/// A probe without a list finds whoever has something pending, and nobody else.
pub async fn probe_discovers_tenants(trial: Trial) {
    let names: Vec<_> = ["T", "a", "b", "t", "Å"].into_iter().map(tenant).collect();
    let mut oldest = Vec::new();
    for tenant in &names {
        oldest.push(trial.commit_some(tenant, 3).await[0]);
    }
    let store = trial.store().await;
    let claimed = claim(&*store, &names[1], 10).await;
    let all: Vec<_> = claimed.messages.iter().map(|message| message.id).collect();
    settle(claimed, &all).await;
    let found = probe(&*store, Tenants::Discovered).await;
    let ids: Vec<_> = found.iter().map(|oldest| oldest.id).collect();
    assert_eq!(tenants_of(found), ["T", "b", "t", "Å"]);
    assert_eq!(ids, [oldest[0], oldest[2], oldest[3], oldest[4]]);
}

/// Oldest is the lowest id, not the smallest `occurred_at`: clocks of writers differ.
pub async fn probe_takes_the_lowest_id(trial: Trial) {
    let acme = tenant("acme");
    let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
    let rows = [2_000, 1_000, 3_000].map(|second| message(&acme, 0).with_occurred_at(at(second)));
    let ids = trial.commit(&rows).await;
    let store = trial.store().await;
    let oldest = &probe(&*store, named([&acme])).await[0];
    assert_eq!(oldest.id, ids[0], "the lowest id is the oldest message");
    assert_eq!(oldest.time.map(|time| time.occurred_at), Some(at(2_000)), "its own occurred_at");
}

/// A message from the store's future has the age zero; it is not left out.
pub async fn probe_age_is_never_negative(trial: Trial) {
    let acme = tenant("acme");
    let tomorrow = Timestamp::from(std::time::SystemTime::now() + Duration::from_secs(86_400));
    trial.commit(&[message(&acme, 0).with_occurred_at(tomorrow)]).await;
    let store = trial.store().await;
    let found = probe(&*store, named([&acme])).await;
    let ages: Vec<_> = found.iter().filter_map(|oldest| oldest.time.map(|time| time.age)).collect();
    assert_eq!(ages, [Duration::ZERO]);
}

/// The age of a message is measured by the store's clock, from `occurred_at` to the probe.
pub async fn probe_tells_the_age(trial: Trial) {
    let (now, past) = (tenant("now"), tenant("past"));
    let store = trial.store().await;
    trial.commit_some(&now, 1).await;
    let first = probe(&*store, named([&now])).await[0].time.expect("a readable time");
    assert!(first.age < Duration::from_secs(30), "a message of this moment is {:?} old", first.age);
    let hour = Duration::from_secs(3_600);
    let micros = i64::try_from(hour.as_micros()).unwrap_or(i64::MAX);
    let before = Timestamp::from_micros(first.occurred_at.as_micros() - micros);
    trial.commit(&[message(&past, 0).with_occurred_at(before)]).await;
    let second = probe(&*store, named([&past])).await[0].time.expect("a readable time");
    let expected = hour..hour + Duration::from_secs(30);
    assert!(expected.contains(&second.age), "a message of an hour ago is {:?} old", second.age);
}

/// A probe claims nothing, sees through claims and waits for none.
pub async fn probe_claims_nothing(trial: Trial) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    trial.commit_some(&acme, 1).await;
    trial.commit_some(&globex, 1).await;
    let (holder, other) = (trial.store().await, trial.store().await);
    let held = claim(&*holder, &acme, 1).await;
    let found = trial.at_once("a probe of a held tenant", probe(&*other, named([&acme, &globex]))).await;
    assert_eq!(tenants_of(found), ["acme", "globex"]);
    assert!(!is_held(&*holder, &globex).await, "the probe took a tenant");
    settle(held, &[]).await;
}

/// A probe changes nothing: the same messages are pending afterwards.
pub async fn probe_changes_nothing(trial: Trial) {
    let acme = tenant("acme");
    let ids = trial.commit_some(&acme, 2).await;
    let store = trial.store().await;
    for _ in 0..3 {
        assert_eq!(probe(&*store, named([&acme])).await[0].id, ids[0]);
    }
    assert_eq!(pending(&*store, &acme).await, ids);
}

/// One probe takes thousands of tenants, and answers for no other.
pub async fn probe_takes_many_tenants(trial: Trial) {
    let tenants: Vec<_> = (0..2_000).map(|n| tenant(&format!("tenant-{n:04}"))).collect();
    // Before, between and behind those that are asked for.
    for other in ["another", "tenant-0100-b", "tenant-2000"] {
        trial.commit_some(&tenant(other), 1).await;
    }
    let rows: Vec<_> = tenants.iter().step_by(100).map(|tenant| message(tenant, 0)).collect();
    let ids = trial.commit(&rows).await;
    let store = trial.store().await;
    let found = probe(&*store, named(&tenants)).await;
    assert_eq!(found.iter().map(|oldest| oldest.id).collect::<Vec<_>>(), ids);
}

fn tenants_of(found: Vec<OldestPending>) -> Vec<String> {
    found.into_iter().map(|oldest| oldest.tenant_id.to_string()).collect()
}
