//! A store that may read and not mark: nothing is published for ever.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{HealthReport, OperationKind, TenantState};
use outbox_testkit::{ManualClock, Recorder};

use crate::postgres::{Driver, ROLE, Stage};
use crate::server::{Entry, Replica, ServerDatabase, quick, tenant};

const CYCLES: usize = 20;
const POLL: Duration = Duration::from_millis(200);
const CEILING: Duration = Duration::from_secs(30);

/// A replica whose clock a test moves, with the default back-off.
fn replica(stage: &Stage, recorder: &Recorder, clock: &ManualClock) -> Replica {
    let hour = Duration::from_hours(1);
    let config = quick()
        .poll_interval(POLL)
        .max_back_off(CEILING)
        .max_lag(Duration::from_millis(1))
        // The database answers in real time, whatever this clock shows.
        .store_timeout(hour)
        .health_timeout(hour);
    Replica::start_with(&stage.store(3), recorder.clone(), config, |relay| {
        relay.clock(Arc::new(clock.clone()))
    })
}

/// Lets the tenant back off so often, and answers how long it waits each time. It has not waited out the last one,
/// and nobody holds the tenant: the server needs a moment to end the session of a claim that failed, and a claim
/// that finds the tenant held waits for the next poll, which a clock that stands still does not bring.
async fn back_offs(stage: &Stage, replica: &Replica, clock: &ManualClock) -> Vec<Duration> {
    let mut waits = Vec::with_capacity(CYCLES);
    for nth in 1..=CYCLES {
        clock.advance(waits.last().copied().unwrap_or_default());
        waits.push(replica.journal.back_off(nth).await);
        stage.database.wait_until_nobody_holds().await;
    }
    waits
}

fn assert_waits_grow(waits: &[Duration]) {
    for (wait, failures) in waits.iter().zip(1..) {
        let longest = POLL.saturating_mul(1 << failures.min(20)).min(CEILING);
        assert!(*wait <= longest && *wait >= longest / 2, "failure {failures}: {wait:?}, {longest:?}");
    }
}

/// Without the privilege to mark, the claim itself fails: nothing is ever published, the waits grow, health is red
/// and says what to grant; granted, everything is published once.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_role_that_may_not_mark_publishes_nothing_and_health_says_what_to_grant(driver: Driver) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 3).await;
    stage.database.run(format!("REVOKE UPDATE ON outbox_message FROM {ROLE}")).await;
    let (recorder, clock) = (Recorder::new(), ManualClock::new());
    let replica = replica(&stage, &recorder, &clock);
    assert_waits_grow(&back_offs(&stage, &replica, &clock).await);
    assert!(recorder.deliveries().is_empty());
    let report = replica.relay.health().check().await;
    assert!(!report.is_healthy());
    let told = matches!(&report.tenants.get("acme").unwrap().state, TenantState::BackingOff { reason, .. }
        if reason.contains("grant SELECT and UPDATE"));
    assert!(told, "{report:?}");

    stage.database.run(format!("GRANT UPDATE ON outbox_message TO {ROLE}")).await;
    clock.advance(CEILING);
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    drop(replica);
    stage.end().await;
}

/// Row security that lets rows be read and not marked shows only at the mark: one publish of the batch for each
/// back-off, of which there are ever fewer, and never one for each poll; health is red and says why.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn row_security_that_hides_the_mark_costs_one_batch_a_back_off_and_health_says_why(
    driver: Driver,
) {
    let stage = Stage::new(driver).await;
    stage.append("acme", 1).await;
    stage
        .database
        .run(format!(
            "CREATE POLICY reading ON outbox_message FOR SELECT TO {ROLE} USING (true);
             CREATE POLICY marking ON outbox_message FOR UPDATE TO {ROLE} USING (false);
             ALTER TABLE outbox_message ENABLE ROW LEVEL SECURITY"
        ))
        .await;
    let (recorder, clock) = (Recorder::new(), ManualClock::new());
    let replica = replica(&stage, &recorder, &clock);
    let waits = back_offs(&stage, &replica, &clock).await;
    assert_waits_grow(&waits);
    assert!(waits.iter().sum::<Duration>() > Duration::from_mins(4), "{waits:?}");
    let publishes = recorder.deliveries().len();
    assert_eq!(publishes, CYCLES, "for as many back-offs");
    let failed = |entry: &Entry| matches!(entry, Entry::Failed(OperationKind::Settle, _));
    assert!(replica.journal.count(failed) >= CYCLES);
    let report = replica.relay.health().check().await;
    assert!(!report.is_healthy());
    let told = matches!(&report.tenants.get("acme").unwrap().state, TenantState::BackingOff { reason, .. }
        if reason.contains("row security"));
    assert!(told, "{report:?}");
    assert!(!stage.store(1).check().await.unwrap().is_empty(), "check() says nothing about row security");
    drop(replica);
    stage.end().await;
}

/// Row security that hides the rows altogether is what `check()` is for: nothing is published, nothing fails.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn row_security_that_hides_every_row_is_found_by_check(driver: Driver) {
    let stage = Stage::new(driver).await;
    stage.append("acme", 1).await;
    stage.database.run("ALTER TABLE outbox_message ENABLE ROW LEVEL SECURITY").await;
    let recorder = Recorder::new();
    let store = stage.store(2);
    let replica = Replica::start(&store, recorder.clone(), quick());
    replica.journal.wait_for(5, |entry| *entry == Entry::Probed).await;
    assert!(recorder.deliveries().is_empty());
    let findings = store.check().await.unwrap();
    assert!(findings.iter().any(|finding| finding.to_string().contains("row security")), "{findings:?}");
    replica.stop().await;
    stage.database.run("ALTER TABLE outbox_message DISABLE ROW LEVEL SECURITY").await;
    let replica = Replica::start(&store, recorder.clone(), quick());
    stage.wait_until_published().await;
    replica.health(HealthReport::is_healthy).await;
    replica.stop().await;
    stage.end().await;
}
