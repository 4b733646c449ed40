//! A relay that starts where something is missing: the server, the login, the table, a column.

use std::time::Duration;

use outbox_core::{HealthReport, OperationKind};
use outbox_testkit::Recorder;
use servers::Postgres;

use crate::postgres::{Driver, ROLE, Stage};
use crate::server::{Entry, Replica, SOON, assert_pool_is_whole, quick, soon, tenant};

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
    let mut server = Postgres::start(&[]).unwrap();
    let stage = Stage::on(driver, &server, "start").await;
    let written = stage.append("acme", 3).await;
    server.stop();
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    probe_fails_with(
        &replica,
        &["the connection to PostgreSQL was lost or could not be made", driver.unreachable()],
    )
    .await;
    let begin = std::time::Instant::now();
    let report = replica.relay.health().check().await;
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    assert!(report.to_string().contains(driver.unreachable()), "{report}");

    server.start_again().unwrap();
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    replica.health(HealthReport::is_healthy).await;
    let changes = [Entry::ProbeRecovered].map(|change| replica.journal.count(|entry| *entry == change));
    assert_eq!(changes, [1]);
    assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::ProbeFailing(_))), 1);
    replica.stop().await;
    stage.end().await;
}

/// The table is missing: the error says to create it, and the relay works when somebody has.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_missing_table_is_an_error_that_says_to_create_it_and_is_noticed_when_it_appears(
    driver: Driver,
) {
    let stage = Stage::new(driver).await;
    stage.database.run("DROP TABLE outbox_message").await;
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    probe_fails_with(&replica, &["public.outbox_message does not exist", "create it"]).await;
    let report = replica.health(|report| !report.is_healthy()).await;
    assert!(report.to_string().contains("does not exist"), "{report}");

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
    stage.database.run("ALTER TABLE outbox_message RENAME COLUMN subject_id TO subject").await;
    let recorder = Recorder::new();
    let config = quick().max_lag(Duration::from_millis(1));
    let store = stage.store(3);
    let replica = Replica::start(&store, recorder.clone(), config);
    replica.journal.wait_for_failed(OperationKind::Claim).await;
    let named = |entry: &Entry| {
        matches!(entry, Entry::BackedOff { reason, .. }
            if reason.contains("public.outbox_message lacks a column") && reason.contains("subject_id"))
    };
    replica.journal.wait_for(1, named).await;
    assert!(!replica.relay.health().check().await.is_healthy());
    let findings = store.check().await.unwrap();
    assert!(findings.iter().any(|finding| finding.to_string().contains("subject_id")), "{findings:?}");
    assert!(recorder.deliveries().is_empty());

    stage.database.run("ALTER TABLE outbox_message RENAME COLUMN subject TO subject_id").await;
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    replica.health(HealthReport::is_healthy).await;
    replica.stop().await;
    stage.end().await;
}

/// The database turns the relay away, for want of connections and then because of its login, and takes it back:
/// the relay's attempts get rarer, it says so once per change, and it recovers without a restart.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_database_that_refuses_connections_is_asked_ever_less_often_and_used_again_when_it_returns(
    driver: Driver,
) {
    let stage = Stage::new(driver).await;
    let login = format!("login_{}", stage.database.name);
    stage.database.run(format!("CREATE ROLE {login} LOGIN PASSWORD 'secret'; GRANT {ROLE} TO {login}")).await;
    let options = stage.options().username(&login).password("secret");
    let store = stage.store_as(options, 2);
    let recorder = Recorder::new();
    let replica = Replica::start(&store, recorder.clone(), quick());
    let mut written = stage.append("acme", 1).await;
    stage.wait_until_published().await;

    let refusals = [
        ("CONNECTION LIMIT 0", "CONNECTION LIMIT -1", "no connection left"),
        ("NOLOGIN", "LOGIN", "refused the login"),
    ];
    for (round, (refuse, accept, says)) in refusals.into_iter().enumerate() {
        stage.database.run(format!("ALTER ROLE {login} {refuse}")).await;
        let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{login}'");
        stage.database.run(end).await;
        let failing = |entry: &Entry| matches!(entry, Entry::ProbeFailing(_));
        replica.journal.wait_for(round + 1, failing).await;
        let report = replica.health(|report| report.to_string().contains(says)).await;
        assert!(!report.is_healthy());
        // Attempts without a pause would take no time. The first pauses are the shortest: three quarters of 40 ms.
        let begin = std::time::Instant::now();
        let so_far = replica.journal.count(|entry| matches!(entry, Entry::Failed(..)));
        replica.journal.wait_for(so_far + 6, |entry| matches!(entry, Entry::Failed(..))).await;
        assert!(begin.elapsed() > Duration::from_millis(60), "six attempts in {:?}", begin.elapsed());
        written.extend(stage.append("acme", 2).await);
        stage.database.run(format!("ALTER ROLE {login} {accept}")).await;
        stage.wait_until_published().await;
        replica.health(HealthReport::is_healthy).await;
        replica.journal.wait_for(round + 1, |entry| *entry == Entry::ProbeRecovered).await;
        assert_eq!(replica.journal.count(failing), round + 1, "once per change");
    }
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    replica.stop().await;
    assert_pool_is_whole(&store).await;
    store.close().await;
    soon("the role goes", stage.database.run(format!("DROP ROLE {login}"))).await;
    stage.end().await;
}
