//! Servers that cannot be written to: a standby, and one that is read-only by default.

use std::time::Duration;

use outbox_core::{HealthCheck, HealthReport, OperationKind, RelayConfig};
use outbox_testkit::Recorder;
use servers::Postgres;

use crate::postgres::{Database, Driver, Stage};
use crate::server::{Entry, Replica, quick, shrinks_to, tenant};

/// On a standby the probe itself fails and says why: nothing is claimed or published, however often it is tried, each
/// probe closes its connection, and health is red, also where nothing is pending. After its promotion everything is
/// published, once, over the same pool.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_relay_on_a_standby_publishes_nothing_until_the_promotion(driver: Driver) {
    let primary = Postgres::start(&[]).unwrap();
    let stage = Stage::on(driver, &primary, "standby").await;
    let written = stage.append("acme", 3).await;
    let empty = Stage::on(driver, &primary, "empty").await;
    let standby = primary.standby().unwrap();
    standby.wait_for_replay(&primary).unwrap();
    let options = stage.options().port(standby.address().port());
    let store = stage.store_as(options.clone(), 3);
    let recorder = Recorder::new();
    let replica = Replica::start(&store, recorder.clone(), quick().max_lag(Duration::from_millis(1)));
    let says = |entry: &Entry| matches!(entry, Entry::Failed(OperationKind::Probe, error) if error.contains("the server is a standby"));
    replica.journal.wait_for(4, says).await;
    assert!(recorder.deliveries().is_empty());
    let red = |report: &HealthReport| report.to_string().contains("the server is a standby");
    replica.health(red).await;
    shrinks_to(&store, 0).await;
    let options_of_empty = empty.options().port(standby.address().port());
    let config = RelayConfig::builder().discover_tenants().build().unwrap();
    let idle = HealthCheck::new(empty.store_as(options_of_empty, 1), &config).check().await;
    assert!(red(&idle), "{idle}");
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
    empty.end().await;
    stage.end().await;
}

/// Where another server has the address, or the same was started anew, observers hear of it, and nothing is red.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn another_server_is_told_of_and_is_not_red(driver: Driver) {
    let mut server = Postgres::start(&[]).unwrap();
    let stage = Stage::on(driver, &server, "another").await;
    stage.append("acme", 1).await;
    let replica = Replica::start(&stage.store(3), Recorder::new(), quick());
    replica.publishes_all_of(&stage).await;
    assert_eq!(replica.journal.count(|entry| *entry == Entry::AnotherServer), 0);
    server.restart().unwrap();
    replica.journal.wait_for(1, |entry| *entry == Entry::AnotherServer).await;
    stage.append("acme", 1).await;
    replica.publishes_all_of(&stage).await;
    replica.health(HealthReport::is_healthy).await;
    assert_eq!(replica.journal.count(|entry| *entry == Entry::AnotherServer), 1);
    replica.stop().await;
    stage.end().await;
}

/// A server that is read-only by default can be written to by who says so, and a claim does: each message is
/// published once and marked. Health is red: applications may write elsewhere.
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
    let report = replica.relay.health().check().await;
    assert!(report.to_string().contains("read-only by default"), "{report}");
    replica.stop().await;
    stage.end().await;
}
