//! Half-open sockets: the connection is there, and nobody answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_core::{HealthProblem, HealthReport, OperationKind, SystemClock};
use outbox_testkit::{FaultyPublisher, PublishFault, Recorder, When};
use servers::{Cut, Proxy};

use crate::AnyStore;
use crate::server::{
    Driver, Entry, PrivateServer as _, Replica, SOON, ServerDatabase, Stage, assert_pool_is_whole, quick,
    recorded, soon, started, tenant,
};

const STORE_TIMEOUT: Duration = Duration::from_millis(500);
const HEALTH_TIMEOUT: Duration = Duration::from_millis(300);

/// A replica behind a proxy that can go silent, and another that is not.
struct Line<D: ServerDatabase> {
    stage: Stage<D>,
    proxy: Arc<Proxy>,
    store: AnyStore,
    all: Recorder,
}

impl<D: ServerDatabase> Line<D> {
    async fn new(driver: Driver<D>, name: &str) -> Self {
        let server = D::tcp_server();
        let stage = Stage::on(driver, server, name).await;
        let proxy = Arc::new(Proxy::start(server.address()).unwrap());
        let options = D::by_port(stage.options(), proxy.port());
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
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        let silent = |problem: &HealthProblem| match problem {
            HealthProblem::Silent { timeout } => *timeout == HEALTH_TIMEOUT,
            other => matches!(other, HealthProblem::Failed { .. }),
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
        self.stage.database.wait_until_nothing_is_left().await;
        assert_pool_is_whole(&self.store).await;
        self.stage.end().await;
    }
}

/// Nobody answers a probe: it fails in the store's time, health is red in its own, and both recover.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_probe_on_a_half_open_socket_fails_in_time_and_recovers<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let line = Line::new(driver, "half_open_probe").await;
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
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_claim_on_a_half_open_socket_gives_its_place_back_and_the_other_takes_over<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    let line = Line::new(driver, "half_open_claim").await;
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
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_publish_over_a_half_open_socket_is_the_holders_last<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let line = Line::new(driver, "half_open_publish").await;
    let mine = recorded(&line.all);
    let written = line.stage.append("acme", 3).await;
    // Longer than the second after which a claim is verified.
    let slow = FaultyPublisher::new(mine.clone(), Arc::new(SystemClock::new()));
    slow.fail_times(1, When::Message(written[0]), PublishFault::Slow(Duration::from_millis(1_100)));
    let replica = line.behind(slow);
    let proxy = Arc::clone(&line.proxy);
    replica.journal.before_next(OperationKind::Publish, move || proxy.freeze());
    // On a busy machine the tenant may have backed off after an earlier claim as well.
    replica.journal.wait_for_failed(OperationKind::Verify).await;
    assert_eq!(started(&mine), written[..1], "the holder went on without an answer");
    line.assert_red(&replica).await;
    other_takes_over_once_the_connection_is_dead(&line, &written).await;
    line.assert_recovers(replica).await;
}

/// Nobody answers a settlement: it fails in the store's time; what it marked or not is decided by the server, and
/// the other replica publishes what it did not mark.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_settlement_on_a_half_open_socket_gives_its_place_back_and_the_other_takes_over<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    let line = Line::new(driver, "half_open_settle").await;
    let mine = recorded(&line.all);
    let written = line.stage.append("acme", 3).await;
    let replica = line.behind(mine.clone());
    let proxy = Arc::clone(&line.proxy);
    replica.journal.before_next(OperationKind::Settle, move || proxy.freeze());
    let begin = Instant::now();
    replica.journal.wait_for_failed(OperationKind::Settle).await;
    assert!(begin.elapsed() < SOON);
    assert_eq!(started(&mine), written);
    line.assert_red(&replica).await;
    other_takes_over_once_the_connection_is_dead(&line, &written).await;
    line.assert_recovers(replica).await;
}

/// The connection ends around the COMMIT of a settlement, which is an error either way. Where the server did not get
/// it, the batch is published again, in order; where only its answer was lost, everything is marked, and nothing is
/// published again.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_commit_that_is_lost_repeats_its_batch_and_one_whose_answer_is_lost_repeats_nothing<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    for (name, cut, times) in [("commit_lost", Cut::Before, 2), ("answer_lost", Cut::Answer, 1)] {
        let line = Line::new(driver, name).await;
        let replica = line.behind(line.all.clone());
        let proxy = Arc::clone(&line.proxy);
        replica.journal.before_next(OperationKind::Settle, move || proxy.cut_at("COMMIT", cut));
        let written = line.stage.append("acme", 3).await;
        replica.journal.wait_for_failed(OperationKind::Settle).await;
        line.stage.wait_until_published().await;
        // The append is one commit, and so is in one batch.
        assert_eq!(line.all.accepted(&tenant("acme")), written.repeat(times), "{cut:?}");
        line.assert_recovers(replica).await;
    }
}

/// Before: held. A cut stands for the server's keepalives, and limits on silence, which end the session.
async fn other_takes_over_once_the_connection_is_dead(
    line: &Line<impl ServerDatabase>,
    written: &[outbox_core::MessageId],
) {
    let second = recorded(&line.all);
    let other = line.direct(&second);
    other.journal.wait_for(2, |entry| *entry == Entry::Held).await;
    let holders = line.stage.database.holders().await;
    assert_eq!(holders, 1, "one session holds the tenant, and somebody has to find it dead");
    line.proxy.cut();
    soon("the other replica publishes", second.wait_for_accepted(written.len())).await;
    line.stage.wait_until_published().await;
    assert_eq!(second.accepted(&tenant("acme")), written);
    other.stop().await;
}
