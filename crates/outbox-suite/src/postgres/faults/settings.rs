//! Servers whose defaults are not what one would wish: isolation, timeouts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::SystemClock;
use outbox_testkit::{FaultyPublisher, ManualClock, PublishFault, Recorder, When};
use sqlx::{Connection as _, PgConnection};

use crate::postgres::{Database, Driver, Stage};
use crate::server::{Entry, Replica, ServerDatabase as _, quick, recorded, soon, started, tenant};

const HAND_OVERS: usize = 40;

/// The isolation inside each claim, written down by each mark.
const WATCH: &str = "CREATE TABLE seen (isolation text);
    GRANT INSERT ON seen TO PUBLIC;
    CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO seen VALUES (current_setting('transaction_isolation')); RETURN NEW;
    END $$;
    CREATE TRIGGER watch BEFORE UPDATE ON outbox_message FOR EACH ROW EXECUTE FUNCTION watch();";

/// Two replicas hand a tenant over to each other many times: no message is published twice, whatever the
/// server's default isolation, since each claim says its own.
async fn hand_over_under(driver: Driver, isolation: &str) {
    let stage = Stage::new(driver).await;
    stage.database.run(WATCH).await;
    let default =
        format!("ALTER DATABASE {} SET default_transaction_isolation = '{isolation}'", stage.database.name);
    stage.database.run(default).await;
    let all = Recorder::new();
    let recorders = [recorded(&all), recorded(&all)];
    let replicas = recorders.each_ref().map(|recorder| {
        let config = quick().poll_interval(Duration::from_millis(1)).initial_batch(2).max_batch(2);
        Replica::start(&stage.store(3), recorder.clone(), config)
    });
    let mut written = Vec::new();
    while hand_overs(&all, &recorders[0]) < HAND_OVERS {
        assert!(written.len() < 20_000, "the replicas do not hand over");
        for _ in 0..10 {
            written.extend(stage.append("acme", 6).await);
            soon("the messages are published", all.wait_for_accepted(written.len())).await;
        }
    }
    stage.wait_until_published().await;
    assert_eq!(all.accepted(&tenant("acme")), written);
    all.assert_in_order();
    all.assert_no_duplicates();
    for (replica, recorder) in replicas.into_iter().zip(&recorders) {
        assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
        assert!(!started(recorder).is_empty(), "one of the replicas had no turn");
        replica.stop().await;
    }
    let seen = stage.database.text("SELECT string_agg(DISTINCT isolation, ',') FROM seen").await;
    assert_eq!(seen, "read committed");
    stage.end().await;
}

/// How often the publishes changed from one replica to the other.
fn hand_overs(all: &Recorder, one: &Recorder) -> usize {
    let of_one: BTreeSet<_> = started(one).into_iter().collect();
    let whose: Vec<bool> = started(all).iter().map(|id| of_one.contains(id)).collect();
    whose.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn replicas_republish_nothing_where_the_default_isolation_is_repeatable_read(
    driver: Driver,
) {
    hand_over_under(driver, "repeatable read").await;
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn replicas_republish_nothing_where_the_default_isolation_is_serializable(driver: Driver) {
    hand_over_under(driver, "serializable").await;
}

/// A publish takes three seconds where the server ends idle transactions after one: one publish, no duplicate.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_publish_outlives_the_limit_on_idle_transactions(driver: Driver) {
    let stage = Stage::new(driver).await;
    let limit =
        format!("ALTER DATABASE {} SET idle_in_transaction_session_timeout = '1s'", stage.database.name);
    stage.database.run(limit).await;
    let written = stage.append("acme", 3).await;
    let all = Recorder::new();
    // Real seconds: they are the server's.
    let publisher = FaultyPublisher::new(all.clone(), Arc::new(SystemClock::new()));
    publisher.fail(When::Message(written[0]), PublishFault::Slow(Duration::from_secs(3)));
    let replicas = [(); 2].map(|()| Replica::start(&stage.store(3), publisher.clone(), quick()));
    stage.wait_until_published().await;
    assert_eq!(all.accepted(&tenant("acme")), written);
    all.assert_in_order();
    assert_eq!(publisher.calls(), 3, "a message was published again");
    for replica in replicas {
        assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
        replica.stop().await;
    }
    stage.end().await;
}

/// A publish goes on where the server ends transactions after two seconds, as PostgreSQL can since 17: a transaction that
/// began after the claim is ended by that limit, the claim is not. An older server does not know the limit, and no claim
/// names it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_publish_outlives_the_limit_on_transactions(driver: Driver) {
    let stage = Stage::new(driver).await;
    let known = "SELECT count(*) FROM pg_settings WHERE name = 'transaction_timeout'";
    let is_known = stage.database.number(known).await == 1;
    let version = stage.database.text("SHOW server_version_num").await;
    assert_eq!(is_known, version.parse::<u32>().unwrap() >= 170_000);
    let limit = format!("ALTER DATABASE {} SET transaction_timeout = '2s'", stage.database.name);
    if is_known {
        stage.database.run(limit).await;
    }
    let written = stage.append("acme", 3).await;
    let all = Recorder::new();
    let clock = ManualClock::new();
    let publisher = FaultyPublisher::new(all.clone(), Arc::new(clock.clone()));
    publisher.fail(When::Message(written[0]), PublishFault::Slow(Duration::from_secs(1)));
    let replica = Replica::start(&stage.store(3), publisher.clone(), quick());
    soon("the first message is being published", clock.wait_for_sleepers(1)).await;
    if is_known {
        // It begins later than the claim, and is ended while that is held.
        let mut session = PgConnection::connect_with(&stage.database.options).await.unwrap();
        let error = sqlx::query("SELECT pg_sleep(600)").execute(&mut session).await.unwrap_err();
        assert!(error.to_string().contains("transaction timeout"), "{error}");
    }
    clock.advance(Duration::from_secs(1));
    stage.wait_until_published().await;
    assert_eq!(all.accepted(&tenant("acme")), written);
    assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
    replica.stop().await;
    stage.end().await;
}

/// Short limits on statements and waits that a role or a database sets do not reach a publish: no statement runs
/// and nothing waits meanwhile.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn limits_on_statements_and_lock_waits_do_not_disturb_a_slow_publish(driver: Driver) {
    let stage = Stage::new(driver).await;
    let limits = ["statement_timeout = '400ms'", "lock_timeout = '100ms'"]
        .map(|limit| format!("ALTER DATABASE {} SET {limit}", stage.database.name));
    stage.database.run(limits.join("; ")).await;
    let written = stage.append("acme", 2).await;
    let all = Recorder::new();
    let publisher = FaultyPublisher::new(all.clone(), Arc::new(SystemClock::new()));
    publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(700)));
    let replica = Replica::start(&stage.store(3), publisher.clone(), quick());
    stage.wait_until_published().await;
    assert_eq!(all.accepted(&tenant("acme")), written);
    assert_eq!(publisher.calls(), 2);
    assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
    replica.stop().await;
    stage.end().await;
}

/// What bounds the time of a dead client: the server's side of a claim's connection asks whether it is there.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_asks_the_server_to_find_a_dead_client_within_a_minute(driver: Driver) {
    let stage = Stage::on(driver, Database::tcp_server(), "keepalives").await;
    stage
        .database
        .run(
            "CREATE TABLE seen (settings text);
             GRANT INSERT ON seen TO PUBLIC;
             CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO seen VALUES (concat_ws(' ', current_setting('tcp_keepalives_idle'),
                     current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count'),
                     current_setting('client_connection_check_interval')));
                 RETURN NEW;
             END $$;
             CREATE TRIGGER watch BEFORE UPDATE ON outbox_message FOR EACH ROW EXECUTE FUNCTION watch();",
        )
        .await;
    let replica = Replica::start(&stage.store(2), Recorder::new(), quick());
    for _ in 0..2 {
        // The second claim knows the server already, and sends everything at once.
        stage.append("acme", 1).await;
        stage.wait_until_published().await;
    }
    assert_eq!(
        stage.database.text("SELECT string_agg(DISTINCT settings, ',') FROM seen").await,
        "30 10 3 1s"
    );
    replica.stop().await;
    stage.end().await;
}
