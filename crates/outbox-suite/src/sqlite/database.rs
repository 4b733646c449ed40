//! What the tests of the SQLite store share: databases that go with the test, rows and claims.

use std::future::poll_fn;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use outbox_core::{ClaimOutcome, ClaimRequest, Claimed, MessageId, NewMessage, Store, StoreError, TenantId};
use outbox_sql::OutboxTable;
use outbox_sql::check::{Finding, Severity};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use tempfile::TempDir;

use super::driver::{Application, Driver};
use crate::AnyStore;

/// How the connections of a store are opened.
#[derive(Debug, Clone)]
pub struct Open {
    /// A path or a URI.
    pub name: String,
    /// At most so many connections at once.
    pub connections: u32,
    /// How long SQLite waits for a writer.
    pub busy: Duration,
    /// Whether SQLite is told to write nothing.
    pub read_only: bool,
    /// Statements for every new connection.
    pub setup: String,
}

impl Open {
    /// So, with three connections that wait half a second.
    pub fn named(name: impl Into<String>) -> Self {
        let (name, setup) = (name.into(), String::new());
        Self { name, connections: 3, busy: Duration::from_millis(500), read_only: false, setup }
    }

    /// The same, waiting so long for a writer.
    pub fn busy(self, busy: Duration) -> Self {
        Self { busy, ..self }
    }

    /// The same, with statements for every new connection.
    pub fn setup(self, setup: impl Into<String>) -> Self {
        Self { setup: setup.into(), ..self }
    }
}

/// A database in a file, in a directory of its own, with an empty outbox table.
pub struct FileDatabase {
    pub(crate) driver: Driver,
    /// Where it is; it goes with this.
    pub directory: TempDir,
    /// The outbox table.
    pub table: OutboxTable,
}

impl FileDatabase {
    /// With the default table.
    pub async fn new(driver: Driver) -> Self {
        Self::with_table(driver, OutboxTable::default()).await
    }

    /// With this table.
    pub async fn with_table(driver: Driver, table: OutboxTable) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let database = Self { driver, directory, table };
        let mut connection = database.connection().await;
        driver.create(&mut connection, &database.table).await;
        connection.close().await.expect("closed");
        database
    }

    /// The database's file.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("app.db")
    }

    /// How the tests' own connections are opened.
    pub fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(self.path())
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_millis(500))
    }

    /// A connection of the test's own.
    pub async fn connection(&self) -> SqliteConnection {
        use sqlx::ConnectOptions as _;
        self.options().connect().await.expect("the database opens")
    }

    /// How a store's connections are opened.
    pub fn open(&self) -> Open {
        Open::named(self.path().display().to_string())
    }

    /// A store of its own, as another process has it.
    pub fn store(&self) -> AnyStore {
        self.store_as(&self.open())
    }

    /// A store of its own, whose connections are opened like this.
    pub fn store_as(&self, open: &Open) -> AnyStore {
        self.driver.store(open, self.table.clone())
    }

    /// An application's own connection.
    pub async fn application(&self) -> Box<dyn Application> {
        self.driver.connect(&self.open()).await
    }

    /// Commits so many messages of a tenant.
    pub async fn commit(&self, tenant: &TenantId, count: usize) -> Vec<MessageId> {
        let messages: Vec<_> = (0..count).map(|number| message(tenant, number)).collect();
        self.application().await.append_all(&self.table, &messages).await.expect("appended")
    }

    /// What is pending in the file that has the name now.
    pub(crate) async fn pending(&self) -> Vec<MessageId> {
        let mut connection = self.connection().await;
        let statement = format!(
            "SELECT id FROM {} WHERE published_at IS NULL ORDER BY id",
            self.table.quoted(outbox_sql::Dialect::Sqlite)
        );
        let ids: Vec<i64> =
            sqlx::query_scalar(AssertSqlSafe(statement)).fetch_all(&mut connection).await.expect("read");
        ids.into_iter().map(MessageId::new).collect()
    }

    /// How many messages are marked.
    pub async fn marked(&self) -> i64 {
        let mut connection = self.connection().await;
        let statement = format!(
            "SELECT count(*) FROM {} WHERE published_at IS NOT NULL",
            self.table.quoted(outbox_sql::Dialect::Sqlite)
        );
        sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(&mut connection).await.expect("counted")
    }

    /// The lock files that there are.
    pub fn lock_files(&self) -> Vec<PathBuf> {
        lock_files(self.directory.path())
    }
}

/// The lock files of a directory.
pub fn lock_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock")).collect()
}

/// A table that somebody made without our types, with rows that cannot be.
pub(crate) const LOOSE: &str = "DROP TABLE outbox_message; CREATE TABLE outbox_message (id INTEGER PRIMARY KEY, tenant_id, \
     kind, subject_id, payload, headers, occurred_at, published_at)";

/// Runs statements on a connection of their own.
pub(crate) async fn execute(database: &FileDatabase, statement: &str) {
    let mut connection = database.connection().await;
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("executed");
    connection.close().await.expect("closed");
}

/// A tenant.
pub fn tenant(id: &str) -> TenantId {
    TenantId::new(id).expect("a tenant id")
}

/// A tenant's message with this number.
pub fn message(tenant: &TenantId, number: usize) -> NewMessage {
    NewMessage::new(tenant.clone(), "order.placed", format!("order-{number}"), format!("payload {number}"))
}

/// A claim of at most so many messages.
pub fn request(tenant: &TenantId, limit: u32) -> ClaimRequest {
    ClaimRequest::new(tenant.clone(), NonZeroU32::new(limit).expect("a limit"))
}

/// Claims a tenant; `None` if it is held.
///
/// # Errors
/// The store's.
pub async fn try_claim(store: &dyn Store, tenant: &TenantId) -> Result<Option<Claimed>, StoreError> {
    match store.claim(&request(tenant, 100)).await? {
        ClaimOutcome::Claimed(claimed) => Ok(Some(claimed)),
        _ => Ok(None),
    }
}

/// Claims a tenant's oldest 100 messages as soon as nobody holds it.
pub async fn claim(store: &dyn Store, tenant: &TenantId) -> Claimed {
    crate::claim(store, &request(tenant, 100)).await
}

/// The ids that a claim handed out.
pub fn ids(claimed: &Claimed) -> Vec<MessageId> {
    claimed.messages.iter().map(|message| message.id).collect()
}

/// The errors that a check finds.
pub fn errors(findings: &[Finding]) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Polls a future so many times, then drops it.
pub async fn polled(polls: usize, future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        polled += 1;
        if polled > polls { Poll::Ready(()) } else { future.as_mut().poll(context) }
    })
    .await;
}
