//! Servers that cannot be written to: a standby, and one that is read-only by default.

use std::time::Duration;

use outbox_core::{HealthReport, TenantState};
use outbox_testkit::Recorder;
use servers::Postgres;

use crate::postgres::{Database, Driver, Stage};
use crate::server::{Entry, Replica, quick, tenant};

/// On a standby the claim itself fails and says why: nothing is published, however often it is tried, and health
/// is red. After its promotion everything is published, once, over the same pool.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_relay_on_a_standby_publishes_nothing_until_the_promotion(driver: Driver) {
    let primary = Postgres::start(&[]).unwrap();
    let stage = Stage::on(driver, &primary, "standby").await;
    let written = stage.append("acme", 3).await;
    let standby = primary.standby().unwrap();
    standby.wait_for_replay(&primary).unwrap();
    let options = stage.options().port(standby.address().port());
    let store = stage.store_as(options.clone(), 3);
    let recorder = Recorder::new();
    let replica = Replica::start(&store, recorder.clone(), quick().max_lag(Duration::from_millis(1)));
    let says = |entry: &Entry| {
        matches!(entry, Entry::BackedOff { reason, .. }
            if reason.contains("claim failed") && reason.contains("connect to the primary"))
    };
    replica.journal.wait_for(4, says).await;
    assert!(recorder.deliveries().is_empty());
    let red = |report: &HealthReport| {
        let acme = report.tenants.get(&tenant("acme")).map(|acme| &acme.state);
        !report.is_healthy() && matches!(acme, Some(TenantState::BackingOff { .. }))
    };
    replica.health(red).await;
    let findings = store.check().await.unwrap();
    assert!(findings.iter().any(|finding| finding.to_string().contains("standby")), "{findings:?}");

    standby.execute(&stage.database.name, "SELECT pg_promote()").unwrap();
    let promoted = Database {
        driver,
        name: stage.database.name.clone(),
        options: options.clone(),
        admin: sqlx::postgres::PgPoolOptions::new()
            .connect_lazy_with(stage.database.options.clone().port(standby.address().port())),
    };
    promoted.wait_until("SELECT NOT EXISTS (SELECT FROM outbox_message WHERE published_at IS NULL)").await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    recorder.assert_no_duplicates();
    replica.health(HealthReport::is_healthy).await;
    replica.stop().await;
    promoted.admin.close().await;
    stage.end().await;
}

/// A server that is read-only by default can be written to by who says so, and a claim does: each message is
/// published once and marked.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_read_only_default_does_not_keep_a_claim_from_marking(driver: Driver) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 5).await;
    stage
        .database
        .run(format!("ALTER DATABASE {} SET default_transaction_read_only = on", stage.database.name))
        .await;
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    recorder.assert_no_duplicates();
    assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
    replica.stop().await;
    stage.end().await;
}
