//! Half-open sockets: the connection is there, and nobody answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_core::SystemClock;
use outbox_core::{HealthProblem, HealthReport, OperationKind};
use outbox_testkit::{FaultyPublisher, PublishFault, Recorder, When};
use sqlx::postgres::PgSslMode;
use xtask::servers::Proxy;

use super::driver::PostgresStore;
use super::stage::{
    BOUND, Entry, Replica, Stage, assert_pool_is_whole, quick, recorded, soon, started, tcp_server,
};
use super::support::{STORE, tenant};

const STORE_TIMEOUT: Duration = Duration::from_millis(500);
const HEALTH_TIMEOUT: Duration = Duration::from_millis(300);

/// A replica behind a proxy that can go silent, and another that is not.
struct Line {
    stage: Stage,
    proxy: Arc<Proxy>,
    store: PostgresStore,
    all: Recorder,
}

impl Line {
    async fn new(name: &str) -> Self {
        let server = tcp_server();
        let stage = Stage::on(server, name).await;
        let proxy = Arc::new(Proxy::start(server.address()).unwrap());
        let options = stage.options().host("127.0.0.1").port(proxy.port()).ssl_mode(PgSslMode::Disable);
        let store = stage.store_as(options, 2);
        Self { stage, proxy, store, all: Recorder::new() }
    }

    /// The replica behind the proxy. It sweeps one tenant at a time, so that a place that is not given back shows.
    fn behind(&self, publisher: impl outbox_core::Publisher) -> Replica {
        let config = quick().concurrency(1).store_timeout(STORE_TIMEOUT).health_timeout(HEALTH_TIMEOUT);
        Replica::start(&self.store, publisher, config)
    }

    /// The other replica.
    fn direct(&self, publisher: &Recorder) -> Replica {
        Replica::start(&self.stage.store(3), publisher.clone(), quick())
    }

    /// Health is red within its deadline while nobody answers.
    async fn assert_red(&self, replica: &Replica) {
        let begin = Instant::now();
        let report = replica.relay.health().check().await;
        assert!(begin.elapsed() < HEALTH_TIMEOUT + Duration::from_secs(2), "{:?}", begin.elapsed());
        let silent = |problem: &HealthProblem| {
            matches!(problem, HealthProblem::Silent { .. } | HealthProblem::Failed { .. })
        };
        assert!(report.problems.iter().any(silent), "{report}");
    }

    /// The network is there again: health turns green, whatever is pending is published, by this replica too, and
    /// the pool lost nothing.
    async fn assert_recovers(self, replica: Replica) {
        self.proxy.thaw();
        replica.health(HealthReport::is_healthy).await;
        let before = self.all.deliveries().len();
        self.stage.append("globex", 1).await;
        soon("another tenant's message is published", self.all.wait_for_accepted(before + 1)).await;
        self.stage.wait_until_published().await;
        replica.stop().await;
        self.stage.database.wait_until_nothing_is_left(STORE).await;
        assert_pool_is_whole(&self.store).await;
        self.stage.end().await;
    }
}

/// Nobody answers a probe: it fails in the store's time, health is red in its own, and both recover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_on_a_half_open_socket_fails_in_time_and_recovers() {
    let line = Line::new("half_open_probe").await;
    let replica = line.behind(line.all.clone());
    replica.journal.wait_for(2, |entry| *entry == Entry::Probed).await;
    let written = line.stage.append("acme", 1).await;
    line.proxy.freeze();
    // The row may have been seen before; whichever operation is the first to meet the silence fails in time.
    replica.journal.wait_for(1, |entry| matches!(entry, Entry::ProbeFailing(_) | Entry::Failed(..))).await;
    replica.journal.wait_for(1, |entry| matches!(entry, Entry::ProbeFailing(_))).await;
    line.assert_red(&replica).await;
    line.proxy.thaw();
    replica.journal.wait_for(1, |entry| *entry == Entry::ProbeRecovered).await;
    line.stage.wait_until_published().await;
    assert!(line.all.accepted(&tenant("acme")).contains(&written[0]));
    assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::ProbeFailing(_))), 1, "once per change");
    line.assert_recovers(replica).await;
}

/// Nobody answers a claim: the place and the connection are given back in the store's time, and the tenant is the
/// other replica's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_on_a_half_open_socket_gives_its_place_back_and_the_other_takes_over() {
    let line = Line::new("half_open_claim").await;
    let mine = recorded(&line.all);
    let replica = line.behind(mine.clone());
    let proxy = Arc::clone(&line.proxy);
    replica.journal.before_next(OperationKind::Claim, move || proxy.freeze());
    let written = line.stage.append("acme", 3).await;
    replica.journal.wait_for_failed(OperationKind::Claim).await;
    line.assert_red(&replica).await;

    let second = recorded(&line.all);
    let other = line.direct(&second);
    soon("the other replica publishes", second.wait_for_accepted(3)).await;
    line.stage.wait_until_published().await;
    assert_eq!(second.accepted(&tenant("acme")), written);
    assert!(started(&mine).is_empty());
    other.stop().await;
    line.assert_recovers(replica).await;
}

/// Nobody answers while a message is being published: the holder notices at its next verification and emits no
/// more; the tenant is the other's once the server's side of the connection is found dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publish_over_a_half_open_socket_is_the_holders_last() {
    let line = Line::new("half_open_publish").await;
    let mine = recorded(&line.all);
    let written = line.stage.append("acme", 3).await;
    // Longer than the second after which a claim is verified.
    let slow = FaultyPublisher::new(mine.clone(), Arc::new(SystemClock::new()));
    slow.fail_times(1, When::Message(written[0]), PublishFault::Slow(Duration::from_millis(1_100)));
    let replica = line.behind(slow);
    let proxy = Arc::clone(&line.proxy);
    replica.journal.before_next(OperationKind::Publish, move || proxy.freeze());
    replica.journal.wait_for(1, |entry| matches!(entry, Entry::BackedOff { .. })).await;
    assert_eq!(started(&mine), written[..1], "the holder went on without an answer");
    line.assert_red(&replica).await;
    other_takes_over_once_the_connection_is_dead(&line, &written).await;
    line.assert_recovers(replica).await;
}

/// Nobody answers a settlement: it fails in the store's time; what it marked or not is decided by the server, and
/// the other replica publishes what it did not mark.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_on_a_half_open_socket_gives_its_place_back_and_the_other_takes_over() {
    let line = Line::new("half_open_settle").await;
    let mine = recorded(&line.all);
    let written = line.stage.append("acme", 3).await;
    let replica = line.behind(mine.clone());
    let proxy = Arc::clone(&line.proxy);
    replica.journal.before_next(OperationKind::Settle, move || proxy.freeze());
    let begin = Instant::now();
    replica.journal.wait_for_failed(OperationKind::Settle).await;
    assert!(begin.elapsed() < BOUND / 2);
    assert_eq!(started(&mine), written);
    line.assert_red(&replica).await;
    other_takes_over_once_the_connection_is_dead(&line, &written).await;
    line.assert_recovers(replica).await;
}

/// Before: held. A cut stands for the server's keepalives, which end the session after about a minute.
async fn other_takes_over_once_the_connection_is_dead(line: &Line, written: &[outbox_core::MessageId]) {
    let second = recorded(&line.all);
    let other = line.direct(&second);
    other.journal.wait_for(2, |entry| *entry == Entry::Held).await;
    assert_eq!(
        line.stage.database.text(KEEPALIVES).await,
        "1",
        "one session holds the tenant, and somebody has to find it dead"
    );
    line.proxy.cut();
    soon("the other replica publishes", second.wait_for_accepted(written.len())).await;
    line.stage.wait_until_published().await;
    assert_eq!(second.accepted(&tenant("acme")), written);
    other.stop().await;
}

const KEEPALIVES: &str =
    "SELECT count(DISTINCT pid)::text FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// What bounds that minute: the server's side of a claim's connection asks whether its client is there.
#[tokio::test]
async fn a_claim_asks_the_server_to_find_a_dead_client_within_a_minute() {
    let stage = Stage::on(tcp_server(), "keepalives").await;
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
