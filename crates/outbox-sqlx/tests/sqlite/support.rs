//! What the tests of the SQLite store share: databases that go with the test, rows and claims.

use std::future::poll_fn;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use outbox_core::{ClaimOutcome, ClaimRequest, Claimed, MessageId, NewMessage, Store, StoreError, TenantId};
use outbox_sql::OutboxTable;
use outbox_sql::check::Severity;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use tempfile::TempDir;

use crate::driver::{self, Application, SqliteStore, SqliteTable};

/// How the connections of a store are opened.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    /// A path or a URI.
    pub(crate) name: String,
    /// At most so many connections at once.
    pub(crate) connections: u32,
    /// How long SQLite waits for a writer.
    pub(crate) busy: Duration,
    pub(crate) read_only: bool,
    /// Statements for every new connection.
    pub(crate) setup: String,
}

impl Open {
    pub(crate) fn named(name: impl Into<String>) -> Self {
        let (name, setup) = (name.into(), String::new());
        Self { name, connections: 3, busy: Duration::from_millis(500), read_only: false, setup }
    }

    pub(crate) fn busy(self, busy: Duration) -> Self {
        Self { busy, ..self }
    }

    pub(crate) fn setup(self, setup: impl Into<String>) -> Self {
        Self { setup: setup.into(), ..self }
    }
}

/// A database in a file, in a directory of its own, with an empty outbox table.
#[derive(Debug)]
pub(crate) struct FileDatabase {
    pub(crate) directory: TempDir,
    pub(crate) table: OutboxTable,
}

impl FileDatabase {
    pub(crate) async fn new() -> Self {
        Self::with_table(OutboxTable::default()).await
    }

    pub(crate) async fn with_table(table: OutboxTable) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let database = Self { directory, table };
        let mut connection = database.connection().await;
        create(&mut connection, &database.table).await;
        connection.close().await.expect("closed");
        database
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("app.db")
    }

    pub(crate) fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(self.path())
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_millis(500))
    }

    pub(crate) async fn connection(&self) -> SqliteConnection {
        use sqlx::ConnectOptions as _;
        self.options().connect().await.expect("the database opens")
    }

    pub(crate) fn open(&self) -> Open {
        Open::named(self.path().display().to_string())
    }

    /// A store of its own, as another process has it.
    pub(crate) fn store(&self) -> SqliteStore {
        self.store_as(&self.open())
    }

    pub(crate) fn store_as(&self, open: &Open) -> SqliteStore {
        driver::store(open, self.table.clone())
    }

    /// An application's own connection.
    pub(crate) async fn application(&self) -> Application {
        Application::connect(&self.open()).await
    }

    pub(crate) fn writer(&self) -> SqliteTable {
        SqliteTable::new(self.table.clone()).expect("a valid table")
    }

    /// Commits so many messages of a tenant.
    pub(crate) async fn commit(&self, tenant: &TenantId, count: usize) -> Vec<MessageId> {
        let messages: Vec<_> = (0..count).map(|number| message(tenant, number)).collect();
        self.application().await.append_all(&self.writer(), &messages).await.expect("appended")
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
    pub(crate) async fn marked(&self) -> i64 {
        let mut connection = self.connection().await;
        let statement = format!(
            "SELECT count(*) FROM {} WHERE published_at IS NOT NULL",
            self.table.quoted(outbox_sql::Dialect::Sqlite)
        );
        sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(&mut connection).await.expect("counted")
    }

    /// The lock files that there are.
    pub(crate) fn lock_files(&self) -> Vec<PathBuf> {
        lock_files(self.directory.path())
    }
}

pub(crate) fn lock_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock")).collect()
}

/// Makes the table, without what SQLite would refuse to hostile rows.
pub(crate) async fn create(connection: &mut SqliteConnection, table: &OutboxTable) {
    let ddl = SqliteTable::new(table.clone()).expect("a valid table").ddl();
    sqlx::raw_sql(AssertSqlSafe(ddl)).execute(connection).await.expect("the table is made");
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

pub(crate) fn tenant(id: &str) -> TenantId {
    TenantId::new(id).expect("a tenant id")
}

pub(crate) fn message(tenant: &TenantId, number: usize) -> NewMessage {
    NewMessage::new(tenant.clone(), "order.placed", format!("order-{number}"), format!("payload {number}"))
}

pub(crate) fn request(tenant: &TenantId, limit: u32) -> ClaimRequest {
    ClaimRequest::new(tenant.clone(), NonZeroU32::new(limit).expect("a limit"))
}

/// Claims a tenant; `None` if it is held.
pub(crate) async fn try_claim(store: &SqliteStore, tenant: &TenantId) -> Result<Option<Claimed>, StoreError> {
    match store.claim(&request(tenant, 100)).await? {
        ClaimOutcome::Claimed(claimed) => Ok(Some(claimed)),
        _ => Ok(None),
    }
}

/// Claims a tenant that is free.
pub(crate) async fn claim(store: &SqliteStore, tenant: &TenantId) -> Claimed {
    try_claim(store, tenant).await.expect("a claim").expect("the tenant is free")
}

/// Claims a tenant as soon as whoever abandoned it has given it back.
pub(crate) async fn claim_freed(store: &SqliteStore, tenant: &TenantId) -> Claimed {
    let look = async {
        loop {
            if let Some(claimed) = try_claim(store, tenant).await.expect("a claim") {
                return claimed;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(50), look).await.expect("the tenant becomes free")
}

pub(crate) fn ids(claimed: &Claimed) -> Vec<MessageId> {
    claimed.messages.iter().map(|message| message.id).collect()
}

/// An error with what it came from.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line
}

/// The errors that a check finds.
pub(crate) async fn errors(store: &SqliteStore) -> String {
    let findings = store.check().await.expect("a check");
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Polls a future so many times, then drops it.
pub(crate) async fn polled(polls: usize, future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        polled += 1;
        if polled > polls { Poll::Ready(()) } else { future.as_mut().poll(context) }
    })
    .await;
}
