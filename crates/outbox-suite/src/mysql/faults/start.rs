//! A relay that starts where something is missing: the server, the table, a column, a right.

use std::time::Instant;

use outbox_core::{HealthReport, OperationKind, TenantState};
use outbox_testkit::Recorder;
use servers::MariaDb;

use crate::mysql::{Driver, STORE, Stage};
use crate::server::{Entry, Replica, SOON, quick, tenant};

/// The first failed probe says these things.
async fn probe_fails_with(replica: &Replica, parts: &[&str]) {
    replica.journal.wait_for(1, |entry| matches!(entry, Entry::ProbeFailing(_))).await;
    let said = replica.journal.entries().into_iter().find_map(|entry| match entry {
        Entry::ProbeFailing(reason) => Some(reason),
        _ => None,
    });
    let said = said.unwrap();
    assert!(parts.iter().all(|part| said.contains(part)), "{said:?} does not say {parts:?}");
}

/// Nobody listens when the relay starts, which is no error: it says so once, health is red within its deadline,
/// and when the server is there everything is published.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_relay_starts_before_its_database_and_recovers_by_itself(driver: Driver) {
    let mut server = MariaDb::start(&[]).unwrap();
    let stage = Stage::on(driver, &server, "start").await;
    let written = stage.append("acme", 3).await;
    server.stop();
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    probe_fails_with(&replica, &["the connection to the server was lost or could not be made"]).await;
    let begin = Instant::now();
    let report = replica.relay.health().check().await;
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    assert!(!report.is_healthy());

    server.start_again().unwrap();
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    replica.health(HealthReport::is_healthy).await;
    assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::ProbeFailing(_))), 1);
    assert_eq!(replica.journal.count(|entry| *entry == Entry::ProbeRecovered), 1);
    replica.stop().await;
    stage.end().await;
}

/// The table is missing: the error says to create it, and the relay works when somebody has.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_missing_table_is_an_error_that_says_to_create_it_and_is_noticed_when_it_appears(
    driver: Driver,
) {
    let stage = Stage::new(driver).await;
    stage.database.run("DROP TABLE outbox_message, outbox_message_claims").await;
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    probe_fails_with(
        &replica,
        &["outbox_message' doesn't exist", "create outbox_message and its table of claims"],
    )
    .await;
    let report = replica.health(|report| !report.is_healthy()).await;
    assert!(report.to_string().contains("doesn't exist"), "{report}");

    stage.database.make(stage.table.description()).await;
    let written = stage.append("acme", 2).await;
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    replica.health(HealthReport::is_healthy).await;
    replica.stop().await;
    stage.end().await;
}

/// A column is missing that only the claim reads: the error names table and column, nothing is published, and the
/// relay goes on when it is there.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_missing_column_is_an_error_that_names_it_and_is_noticed_when_it_appears(
    driver: Driver,
) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 2).await;
    stage.database.run("ALTER TABLE outbox_message RENAME COLUMN kind TO sort").await;
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    replica.journal.wait_for_failed(OperationKind::Claim).await;
    let named = |entry: &Entry| {
        matches!(entry, Entry::BackedOff { reason, .. }
            if reason.contains("outbox_message lacks a column") && reason.contains("kind"))
    };
    replica.journal.wait_for(1, named).await;
    assert!(recorder.deliveries().is_empty());

    stage.database.run("ALTER TABLE outbox_message RENAME COLUMN sort TO kind").await;
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    replica.stop().await;
    stage.end().await;
}

/// A user that may read and not mark publishes nothing, and health says what to grant; granted, everything is
/// published once.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_user_that_may_not_mark_publishes_nothing_and_health_says_what_to_grant(driver: Driver) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 3).await;
    let table = format!("{}.outbox_message", stage.database.name);
    stage.database.run(format!("REVOKE UPDATE ON {table} FROM {STORE}@'%'")).await;
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    replica.journal.wait_for(3, |entry| matches!(entry, Entry::BackedOff { .. })).await;
    assert!(recorder.deliveries().is_empty());
    let report = replica.relay.health().check().await;
    let told = matches!(&report.tenants.get("acme").unwrap().state, TenantState::BackingOff { reason, .. }
        if reason.contains("grant SELECT and UPDATE"));
    assert!(told, "{report:?}");

    stage.database.run(format!("GRANT UPDATE ON {table} TO {STORE}@'%'")).await;
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    recorder.assert_no_duplicates();
    replica.stop().await;
    stage.end().await;
}
