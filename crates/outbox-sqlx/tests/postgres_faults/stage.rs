//! What a fault needs around it: a table, replicas on it, and a record of what they did.

#[path = "stage/gate.rs"]
mod gate;
#[path = "stage/journal.rs"]
mod journal;

use std::sync::OnceLock;
use std::time::Duration;

use outbox_core::{
    HealthReport, MessageId, Publisher, Relay, RelayBuilder, RelayConfig, RelayConfigBuilder, RelayHandle,
};
use outbox_sqlx::OutboxTable;
use outbox_testkit::Recorder;

pub(crate) use self::gate::Gate;
pub(crate) use self::journal::{Entry, Journal};
use super::driver::StorePool;
use super::support::any::{DIALECT, Options, Server, Store, Table};
use super::support::{Database, message};

/// Far more than anything here takes; a test that reaches it fails.
pub(crate) const BOUND: Duration = Duration::from_secs(50);

/// Long before the deadline that an operation of a store has by default, and longer than a busy machine pauses.
pub(crate) const SOON: Duration = Duration::from_secs(15);

/// An outbox table in a database of its own.
pub(crate) struct Stage {
    pub(crate) database: Database,
    pub(crate) table: Table,
    shared: bool,
}

impl Stage {
    /// The default table, on the server that all tests share.
    pub(crate) async fn new() -> Self {
        Self::with(&OutboxTable::default()).await
    }

    /// This table, on the server that all tests share.
    pub(crate) async fn with(table: &OutboxTable) -> Self {
        let database = Database::create().await;
        let table = database.make(table).await;
        Self { database, table, shared: true }
    }

    /// The default table, on a server that only some tests use.
    pub(crate) async fn on(server: &Server, name: &str) -> Self {
        let database = Database::on(server, name).await;
        let table = database.make(&OutboxTable::default()).await;
        Self { database, table, shared: false }
    }

    /// A store with a pool of so many connections.
    pub(crate) fn store(&self, connections: u32) -> Store {
        self.store_as(self.options(), connections)
    }

    /// A store that connects like this, with a pool of so many connections.
    pub(crate) fn store_as(&self, options: Options, connections: u32) -> Store {
        StorePool::new(options, connections).store(self.table.description())
    }

    /// How a store connects.
    pub(crate) fn options(&self) -> Options {
        self.database.store_options()
    }

    /// Commits so many messages of a tenant.
    pub(crate) async fn append(&self, tenant: &str, count: usize) -> Vec<MessageId> {
        let messages = vec![message(tenant, "{}"); count];
        self.database.append(&self.table, &messages).await.into_iter().map(MessageId::new).collect()
    }

    /// Waits until nothing is pending.
    pub(crate) async fn wait_until_published(&self) {
        let name = self.table.description().quoted(DIALECT);
        self.database
            .wait_until(&format!("SELECT NOT EXISTS (SELECT 1 FROM {name} WHERE published_at IS NULL)"))
            .await;
    }

    /// How many messages are pending.
    pub(crate) async fn pending(&self) -> i64 {
        self.database.number("SELECT count(*) FROM outbox_message WHERE published_at IS NULL").await
    }

    /// Drops the database, where the server stays.
    pub(crate) async fn end(self) {
        if self.shared {
            self.database.drop().await;
        } else {
            self.database.admin.close().await;
        }
    }
}

/// Options for a test that does not want to wait: every 20 ms, and at most 200 ms after a failure. A batch is not cut
/// short by its time, so that a holder without its session is stopped by its verification and by nothing else.
pub(crate) fn quick() -> RelayConfigBuilder {
    RelayConfig::builder()
        .discover_tenants()
        .poll_interval(Duration::from_millis(20))
        .max_back_off(Duration::from_millis(200))
        .max_batch_time(Duration::from_mins(1))
}

/// A relay at work, and what is known of it.
pub(crate) struct Replica {
    pub(crate) relay: Relay,
    pub(crate) journal: Journal,
    pub(crate) handle: RelayHandle,
}

impl Replica {
    /// Starts one.
    pub(crate) fn start(store: &Store, publisher: impl Publisher, config: RelayConfigBuilder) -> Self {
        Self::start_with(store, publisher, config, |builder| builder)
    }

    /// Starts one that is put together with something more.
    pub(crate) fn start_with(
        store: &Store,
        publisher: impl Publisher,
        config: RelayConfigBuilder,
        more: impl FnOnce(RelayBuilder) -> RelayBuilder,
    ) -> Self {
        let journal = Journal::default();
        let builder = Relay::builder(store.clone(), publisher, config.build().unwrap());
        let relay = more(builder.observer(journal.clone())).build().unwrap();
        let handle = relay.start().unwrap();
        Self { relay, journal, handle }
    }

    /// Checks its health until it is like this, and answers the report.
    pub(crate) async fn health(&self, like: impl Fn(&HealthReport) -> bool) -> HealthReport {
        let mut last = None;
        let checking = async {
            loop {
                let report = self.relay.health().check().await;
                if like(&report) {
                    return report;
                }
                last = Some(report);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let answer = tokio::time::timeout(BOUND, checking).await;
        answer.unwrap_or_else(|_| panic!("health never got there: {last:#?}"))
    }

    /// Waits until nothing of a stage is pending.
    pub(crate) async fn publishes_all_of(&self, stage: &Stage) {
        let publishing = async {
            while stage.pending().await > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(BOUND, publishing).await.is_err() {
            let report = self.relay.health().check().await;
            panic!("something stays pending: {report:#?}\n{:#?}", self.journal.entries());
        }
    }

    /// Stops it.
    pub(crate) async fn stop(self) {
        soon("the relay stops", self.handle.stop()).await.unwrap();
    }
}

/// Two records of one relay's publishes: its own, and one that several relays share.
pub(crate) fn recorded(shared: &Recorder) -> Recorder {
    Recorder::around(shared.clone())
}

/// The ids that a recorder saw the start of, in order, ended or not.
pub(crate) fn started(recorder: &Recorder) -> Vec<MessageId> {
    recorder.deliveries().into_iter().map(|delivery| delivery.id).collect()
}

/// Waits for something that is to happen soon.
pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(BOUND, future).await.unwrap_or_else(|_| panic!("it never came about: {what}"))
}

/// A private server over TCP, for the tests that put something between it and the store. It lives as long as
/// this process.
pub(crate) fn tcp_server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]).unwrap())
}

/// A pool gives out all of its connections at once, and no more are open: none is lost, none is kept.
pub(crate) async fn assert_pool_is_whole(store: &Store) {
    let pool = StorePool::of(store);
    let size = pool.max_size();
    let mut all = Vec::new();
    for number in 1..=size {
        let connection = soon(&format!("connection {number} of the pool"), pool.lend()).await.unwrap();
        all.push(connection);
    }
    assert_eq!(pool.size(), size, "the pool has as many connections as it may");
}
