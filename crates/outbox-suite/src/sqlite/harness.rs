//! What the laws need of a database in a file, or of one in memory.
//!
//! Not checked: two writes open at once, which SQLite does not have, and sessions that an operator ends:
//! a claim has none. A killed process is in `processes.rs`, a lost lock in `lock_file.rs`.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use outbox_core::{MessageId, NewMessage, Settling, TenantId};
use outbox_sql::OutboxTable;
use outbox_sql::file_lock::FileLock;
use outbox_testkit::{Capability, Harness, Leftovers, OpenWrite, Unsupported};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use tempfile::TempDir;

use super::database::{Open, lock_files};
use super::driver::{Driver, SqliteDriver};
use crate::{AnyStore, BOUND, LAW, SOON};

const CANNOT: &[Capability] = &[Capability::KillSessions, Capability::OverlappingWrites];

/// A table of a database that lives as long as the harness and those that share it.
struct Sqlite {
    driver: Driver,
    open: Open,
    options: SqliteConnectOptions,
    table: OutboxTable,
    read_only: AtomicBool,
    /// Where the lock files are, if it is a file.
    directory: Option<Arc<TempDir>>,
    /// Keeps a database in memory alive.
    keep: SqlitePool,
}

impl Sqlite {
    async fn new(driver: Driver, open: Open, directory: Option<Arc<TempDir>>, table: OutboxTable) -> Self {
        let options = SqliteConnectOptions::new().filename(&open.name).create_if_missing(true);
        let options = match directory {
            Some(_) => options.journal_mode(SqliteJournalMode::Wal),
            None => options,
        };
        let keep =
            SqlitePoolOptions::new().min_connections(1).max_connections(1).connect_lazy_with(options.clone());
        let mut connection = keep.acquire().await.expect("the database opens");
        driver.create(&mut connection, &table).await;
        Self { driver, open, options, table, read_only: AtomicBool::new(false), directory, keep }
    }

    async fn file(driver: Driver) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let open = Open::named(directory.path().join("app.db").display().to_string());
        Self::new(driver, open, Some(Arc::new(directory)), OutboxTable::default()).await
    }

    /// In memory, shared by name between the connections of this process.
    async fn memory(driver: Driver) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let open = Open::named(format!("file:conformance-{number}?mode=memory&cache=shared"));
        Self::new(driver, open, None, OutboxTable::default()).await
    }

    fn store(&self) -> AnyStore {
        let read_only = self.read_only.load(Ordering::Relaxed);
        let setup = if read_only { "PRAGMA query_only = 1" } else { "" };
        self.driver.store(&self.open.clone().setup(setup), self.table.clone())
    }

    async fn connection(&self) -> SqliteConnection {
        self.options.connect().await.expect("the database opens")
    }

    async fn write(&self, rows: &[NewMessage]) -> OpenWrite {
        if self.directory.is_none() {
            return self.write_later(rows).await;
        }
        let mut application = self.driver.connect(&self.open).await;
        application.execute("BEGIN IMMEDIATE").await;
        let ids = application.append_all(&self.table, rows).await.expect("appended");
        // Dropped before it is polled, it closes the connection, which rolls back.
        OpenWrite::new(ids, async move { application.execute("COMMIT").await })
    }

    /// In memory, SQLite lets nobody read a table while a write of it is open, and a law that looks at that
    /// moment would wait. So this draws the ids and rolls back, and commits the same rows again later: nobody
    /// can tell, since no other write comes between.
    async fn write_later(&self, rows: &[NewMessage]) -> OpenWrite {
        let (table, rows) = (self.table.clone(), rows.to_vec());
        let mut application = self.driver.connect(&self.open).await;
        application.execute("BEGIN IMMEDIATE").await;
        let ids = application.append_all(&table, &rows).await.expect("appended");
        application.execute("ROLLBACK").await;
        OpenWrite::new(ids.clone(), async move {
            let again = application.append_all(&table, &rows).await.expect("appended");
            assert_eq!(again, ids, "another write came between");
        })
    }

    async fn execute(&self, statement: String) {
        let mut connection = self.connection().await;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("executed");
        connection.close().await.expect("closed");
    }

    fn name(&self) -> String {
        self.table.quoted(outbox_sql::Dialect::Sqlite)
    }

    async fn write_hostile(&self, tenant: &TenantId) -> MessageId {
        let statement = format!(
            "INSERT INTO {} (tenant_id, kind, subject_id, headers) VALUES (?1, 'k', 's', '[1]') RETURNING id",
            self.name()
        );
        let mut connection = self.connection().await;
        let query = sqlx::query_scalar(AssertSqlSafe(statement)).bind(tenant.as_str().to_owned());
        let id = query.fetch_one(&mut connection).await.expect("written");
        connection.close().await.expect("closed");
        MessageId::new(id)
    }

    async fn skip_ids(&self, next: MessageId) {
        let name = self.table.name().replace('\'', "''");
        let seq = next.get() - 1;
        self.execute(format!(
            "INSERT INTO sqlite_sequence (name, seq) SELECT '{name}', 0 \
             WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = '{name}'); \
             UPDATE sqlite_sequence SET seq = {seq} WHERE name = '{name}'"
        ))
        .await;
    }

    async fn another_table(&self) -> Self {
        let table = OutboxTable::new(format!("{}_too", self.table.name()));
        Self::new(self.driver, self.open.clone(), self.directory.clone(), table).await
    }

    /// Locks that are held, and a write transaction that is open.
    async fn leftovers(&self) -> Leftovers {
        let files = self.directory.iter().flat_map(|directory| lock_files(directory.path()));
        let held =
            files.filter(|path| FileLock::try_lock(path, path).expect("a lock file").is_none()).count();
        let options = self.options.clone().busy_timeout(Duration::ZERO);
        let mut connection = options.connect().await.expect("the database opens");
        let open = sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut connection).await.is_err();
        connection.close().await.expect("closed");
        Leftovers::new(usize::from(open), held, 0)
    }

    async fn close(self) {
        self.keep.close().await;
    }
}

/// A database in a file or in memory, whose rows are marked or deleted.
pub struct On<D, const MEMORY: bool, const DELETE: bool>(Sqlite, PhantomData<D>);

impl<D: SqliteDriver + Default, const MEMORY: bool, const DELETE: bool> Harness for On<D, MEMORY, DELETE> {
    type Store = AnyStore;
    type Write = OpenWrite;
    const CANNOT: &'static [Capability] = CANNOT;
    const DEADLINE: Duration = LAW;
    const AT_ONCE: Duration = SOON;
    const FREE_WITHIN: Duration = BOUND;

    fn name() -> &'static str {
        let [marking, deleting, in_memory] = D::default().names();
        match (MEMORY, DELETE) {
            (true, _) => in_memory,
            (false, true) => deleting,
            (false, false) => marking,
        }
    }

    async fn open() -> Self {
        let driver = Driver::of::<D>("");
        Self(if MEMORY { Sqlite::memory(driver).await } else { Sqlite::file(driver).await }, PhantomData)
    }

    async fn connect(&self) -> AnyStore {
        self.0.store().with_settling(if DELETE { Settling::Delete } else { Settling::Mark })
    }

    async fn write(&self, rows: &[NewMessage]) -> OpenWrite {
        self.0.write(rows).await
    }

    async fn close(self) {
        self.0.close().await;
    }

    async fn leftovers(&self) -> Result<Leftovers, Unsupported> {
        Ok(self.0.leftovers().await)
    }

    async fn write_hostile(&self, tenant: &TenantId) -> Result<MessageId, Unsupported> {
        Ok(self.0.write_hostile(tenant).await)
    }

    async fn set_read_only(&self) -> Result<(), Unsupported> {
        self.0.read_only.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn another_table(&self) -> Result<Self, Unsupported> {
        Ok(Self(self.0.another_table().await, PhantomData))
    }

    async fn skip_ids(&self, next: MessageId) -> Result<(), Unsupported> {
        self.0.skip_ids(next).await;
        Ok(())
    }

    async fn delete_published(&self) -> Result<(), Unsupported> {
        self.0.execute(format!("DELETE FROM {} WHERE published_at IS NOT NULL", self.0.name())).await;
        Ok(())
    }
}
