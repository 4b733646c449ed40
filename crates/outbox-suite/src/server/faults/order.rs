//! Order, where something would like to overtake.

use outbox_core::{MessageId, RefusalClass, SystemClock};
use outbox_testkit::{FaultyPublisher, PublishFault, Recorder, When};
use std::sync::Arc;

use crate::server::{Driver, Entry, Replica, ServerDatabase, Stage, message, quick, recorded, soon, tenant};

/// The lower id commits later: it is published then, and never skipped by a cursor. Outbox order is the order in
/// which rows become visible, which is documented.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_lower_id_that_commits_later_is_published_and_never_skipped<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let (lower, late) = stage.begin("", &message("acme", "late")).await;
    let higher = stage.append("acme", 1).await[0];
    assert!(lower < higher);
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    soon("the higher id is published", recorder.wait_for_accepted(1)).await;
    stage.wait_until_published().await;
    // Several polls, which find nothing.
    let probed = replica.journal.count(|entry| *entry == Entry::Probed);
    replica.journal.wait_for(probed + 3, |entry| *entry == Entry::Probed).await;
    late.commit().await.unwrap();
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), [higher, lower]);
    replica.stop().await;
    stage.end().await;
}

/// The lower id is rolled back: the higher one goes out at once, with no wait for a gap that never fills.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_lower_id_that_is_rolled_back_holds_nothing_back_and_is_never_seen<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let (_, rolled_back) = stage.begin("", &message("acme", "never")).await;
    let higher = stage.append("acme", 1).await;
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    soon("the higher id is published", recorder.wait_for_accepted(1)).await;
    rolled_back.rollback().await.unwrap();
    let later = stage.append("acme", 1).await;
    soon("the next one is published", recorder.wait_for_accepted(2)).await;
    assert_eq!(recorder.accepted(&tenant("acme")), [higher, later].concat());
    replica.stop().await;
    stage.end().await;
}

/// A row that a crash left pending, and a new one with a wake right after its commit: the old one goes first.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_wake_after_a_commit_lets_nothing_overtake_what_a_crash_left<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let left = stage.append("acme", 1).await;
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    let new = stage.append("acme", 1).await;
    replica.relay.wake();
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), [left, new].concat());
    replica.stop().await;
    stage.end().await;
}

/// A refused message is tried again by either replica, and no replica lets a later one through before it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn no_replica_publishes_past_a_refused_message<D: ServerDatabase>(driver: Driver<D>) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 3).await;
    let all = Recorder::new();
    let publisher = FaultyPublisher::new(all.clone(), Arc::new(SystemClock::new()));
    publisher.fail_times(6, When::Message(written[0]), PublishFault::Refuse(RefusalClass::Refused));
    let tried = [recorded_around(&publisher), recorded_around(&publisher)];
    let replicas =
        tried.each_ref().map(|recorder| Replica::start(&stage.store(3), recorder.clone(), quick()));
    stage.wait_until_published().await;
    assert_eq!(all.accepted(&tenant("acme")), written);
    all.assert_no_duplicates();
    let mut refused = 0;
    for recorder in &tried {
        recorder.assert_in_order();
        refused += recorder.deliveries().iter().filter(|delivery| delivery.accepted == Some(false)).count();
    }
    assert_eq!(refused, 6);
    for replica in replicas {
        replica.stop().await;
    }
    stage.end().await;
}

fn recorded_around(publisher: &FaultyPublisher) -> Recorder {
    Recorder::around(publisher.clone())
}

/// Two replicas and many tenants, with messages written all the while: each tenant's in order, each once.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn replicas_share_many_tenants_without_a_duplicate<D: ServerDatabase>(driver: Driver<D>) {
    let stage = Stage::new(driver).await;
    let all = Recorder::new();
    let replicas =
        [(); 2].map(|()| Replica::start(&stage.store(6), recorded(&all), quick().initial_batch(4)));
    let mut count = 0;
    for _ in 0..10 {
        for name in 0..20 {
            count += stage.append(&format!("T{name}"), 3).await.len();
        }
    }
    soon("everything is published", all.wait_for_accepted(count)).await;
    stage.wait_until_published().await;
    all.assert_in_order();
    all.assert_no_duplicates();
    let ids: std::collections::BTreeSet<MessageId> =
        all.deliveries().into_iter().map(|delivery| delivery.id).collect();
    assert_eq!(ids.len(), count);
    for replica in replicas {
        replica.stop().await;
    }
    stage.end().await;
}

/// S14: replicas come and go under load, some stopped and some dropped, each in the middle of its batches: no two of
/// them publish a tenant at once, nothing is overtaken, nothing is published twice.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn replicas_that_come_and_go_never_publish_a_tenant_at_once<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let mut count = 0;
    for name in 0..64 {
        count += stage.append(&format!("T{name}"), 5).await.len();
    }
    let slow = FaultyPublisher::new(Recorder::new(), Arc::new(SystemClock::new()));
    slow.fail(When::Every, PublishFault::Slow(std::time::Duration::from_millis(4)));
    let all = Recorder::around(slow);
    let stores = [stage.store(6), stage.store(6), stage.store(6)];
    let start = |nth: usize| Replica::start(&stores[nth % 3], all.clone(), quick().initial_batch(3));
    let mut replicas = std::collections::VecDeque::from([start(0), start(1), start(2)]);
    for round in 1..=8 {
        soon("more is published", all.wait_for_accepted(round * count / 10)).await;
        replicas.push_back(start(round));
        let oldest = replicas.pop_front().unwrap();
        if round % 2 == 0 {
            oldest.stop().await;
        } else {
            drop(oldest);
        }
    }
    soon("everything is published", all.wait_for_accepted(count)).await;
    stage.wait_until_published().await;
    all.assert_in_order();
    all.assert_no_duplicates();
    for replica in replicas {
        replica.stop().await;
    }
    stage.end().await;
}

/// A transaction that somebody abandoned, in another table or on another tenant's rows, stops nobody.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn an_abandoned_write_transaction_stops_no_tenant<D: ServerDatabase>(driver: Driver<D>) {
    let stage = Stage::new(driver).await;
    stage.database.run("CREATE TABLE unrelated (n int)").await;
    let other = "INSERT INTO unrelated VALUES (1)";
    let (_, abandoned) = stage.begin(other, &message("abandoned", "{}")).await;
    let tenants: Vec<String> = (1..=10).map(|number| format!("T{number}")).collect();
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(6), recorder.clone(), quick());
    for wave in 1..=5 {
        for tenant in &tenants {
            stage.append(tenant, 5).await;
        }
        soon("the wave is published", recorder.wait_for_accepted(wave * 50)).await;
    }
    stage.wait_until_published().await;
    recorder.assert_in_order();
    recorder.assert_no_duplicates();
    assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
    abandoned.rollback().await.unwrap();
    assert!(recorder.accepted(&tenant("abandoned")).is_empty());
    replica.stop().await;
    stage.end().await;
}
