//! What a fault needs around it: a table, replicas on it, and a record of what they did.

mod gate;
mod journal;

use std::time::Duration;

use outbox_core::{
    HealthReport, MessageId, NewMessage, Publisher, Relay, RelayBuilder, RelayConfig, RelayConfigBuilder,
    RelayHandle, Store,
};
use outbox_sql::OutboxTable;
use outbox_testkit::Recorder;
use sqlx::Transaction;

pub(crate) use self::gate::Gate;
pub use self::journal::{Entry, Journal};
use super::database::ServerDatabase;
use super::driver::Driver;
use super::message;
use super::pool::StorePool;
use crate::{AnyStore, BOUND};

/// An outbox table in a database of its own.
pub struct Stage<D: ServerDatabase> {
    /// Where it is.
    pub database: D,
    /// It.
    pub table: D::Table,
    shared: bool,
}

impl<D: ServerDatabase> Stage<D> {
    /// The default table, on the server that all tests share.
    pub async fn new(driver: Driver<D>) -> Self {
        Self::with(driver, &OutboxTable::default()).await
    }

    /// This table, on the server that all tests share.
    pub async fn with(driver: Driver<D>, table: &OutboxTable) -> Self {
        let database = D::create(driver).await;
        let table = database.make(table).await;
        Self { database, table, shared: true }
    }

    /// The default table, on a server that only some tests use.
    pub async fn on(driver: Driver<D>, server: &D::Server, name: &str) -> Self {
        let database = D::on(driver, server, name).await;
        let table = database.make(&OutboxTable::default()).await;
        Self { database, table, shared: false }
    }

    /// A store with a pool of so many connections.
    pub fn store(&self, connections: u32) -> AnyStore {
        self.store_as(self.options(), connections)
    }

    /// A store that connects like this, with a pool of so many connections.
    pub fn store_as(&self, options: D::Options, connections: u32) -> AnyStore {
        self.database.driver().pool(options, connections).store(self.description())
    }

    /// What the table is called, and its columns.
    pub fn description(&self) -> &OutboxTable {
        D::description(&self.table)
    }

    /// How a store connects.
    pub fn options(&self) -> D::Options {
        self.database.store_options()
    }

    /// Commits so many messages of a tenant.
    pub async fn append(&self, tenant: &str, count: usize) -> Vec<MessageId> {
        let messages = vec![message(tenant, "{}"); count];
        self.database.append(&self.table, &messages).await.into_iter().map(MessageId::new).collect()
    }

    /// Appends a message in a transaction that stays open, after these statements.
    pub(crate) async fn begin(
        &self,
        statements: &'static str,
        message: &NewMessage,
    ) -> (MessageId, Transaction<'static, D::Sql>) {
        let mut transaction = self.database.begin(statements).await;
        let id = D::append_in(&self.table, &mut transaction, message).await;
        (id, transaction)
    }

    /// Waits until nothing is pending.
    pub async fn wait_until_published(&self) {
        let name = self.description().quoted(D::DIALECT);
        self.database
            .wait_until(&format!("SELECT NOT EXISTS (SELECT 1 FROM {name} WHERE published_at IS NULL)"))
            .await;
    }

    /// How many messages are pending.
    pub async fn pending(&self) -> i64 {
        self.database.number("SELECT count(*) FROM outbox_message WHERE published_at IS NULL").await
    }

    /// Drops the database, where the server stays.
    pub async fn end(self) {
        if self.shared {
            self.database.drop().await;
        } else {
            self.database.leave().await;
        }
    }
}

/// Options for a test that does not want to wait: every 20 ms, and at most 200 ms after a failure. A batch is not cut
/// short by its time, so that a holder without its session is stopped by its verification and by nothing else.
pub fn quick() -> RelayConfigBuilder {
    RelayConfig::builder()
        .discover_tenants()
        .poll_interval(Duration::from_millis(20))
        .max_back_off(Duration::from_millis(200))
        .max_batch_time(Duration::from_mins(1))
}

/// A relay at work, and what is known of it.
pub struct Replica {
    /// The relay.
    pub relay: Relay,
    /// What it did.
    pub journal: Journal,
    /// What stops it.
    pub handle: RelayHandle,
}

impl Replica {
    /// Starts one.
    pub fn start(
        store: &(impl Store + Clone),
        publisher: impl Publisher,
        config: RelayConfigBuilder,
    ) -> Self {
        Self::start_with(store, publisher, config, |builder| builder)
    }

    /// Starts one that is put together with something more.
    pub fn start_with(
        store: &(impl Store + Clone),
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
    pub async fn health(&self, like: impl Fn(&HealthReport) -> bool) -> HealthReport {
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
    pub async fn publishes_all_of(&self, stage: &Stage<impl ServerDatabase>) {
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
    pub async fn stop(self) {
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
pub async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(BOUND, future).await.unwrap_or_else(|_| panic!("it never came about: {what}"))
}

/// Waits until a pool has at most so many connections: one that is closed is gone a moment later.
pub async fn shrinks_to(store: &AnyStore, most: u32) {
    let pool = StorePool::of(store);
    let waiting = async {
        while pool.size() > most {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    soon(&format!("at most {most} connections are left"), waiting).await;
}

/// A pool gives out all of its connections at once, and no more are open: none is lost, none is kept.
pub async fn assert_pool_is_whole(store: &AnyStore) {
    let pool = StorePool::of(store);
    let size = pool.max_size();
    let mut all = Vec::new();
    for number in 1..=size {
        let connection = soon(&format!("connection {number} of the pool"), pool.lend()).await.unwrap();
        all.push(connection);
    }
    assert_eq!(pool.size(), size, "the pool has as many connections as it may");
}
