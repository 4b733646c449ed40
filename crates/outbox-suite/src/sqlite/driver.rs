//! The store under test: what differs from ORM to ORM.

use outbox_core::{MessageId, NewMessage, async_trait};
use outbox_sql::{InvalidTable, OutboxTable};
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::database::Open;
use crate::{AnyStore, AppendError};

/// How an ORM's stores are made.
#[async_trait]
pub trait SqliteDriver: Send + Sync + 'static {
    /// What a store is called in reports: marking, deleting, in memory.
    fn names(&self) -> [&'static str; 3];

    /// The statements that make a table.
    ///
    /// # Errors
    /// The ORM's own, where SQLite cannot hold such a table.
    fn ddl(&self, table: OutboxTable) -> Result<String, InvalidTable>;

    /// A store with connections of its own, as another process has it.
    fn store(&self, open: &Open, table: OutboxTable) -> AnyStore;

    /// An application's own connection.
    async fn connect(&self, open: &Open) -> Box<dyn Application>;
}

/// An application's own connection.
#[async_trait]
pub trait Application: Send {
    /// Runs statements.
    async fn execute(&mut self, statements: &str);

    /// Appends a message.
    ///
    /// # Errors
    /// The ORM's own.
    async fn append(&mut self, table: &OutboxTable, message: &NewMessage) -> Result<MessageId, AppendError>;

    /// Appends messages.
    ///
    /// # Errors
    /// The ORM's own.
    async fn append_all(
        &mut self,
        table: &OutboxTable,
        messages: &[NewMessage],
    ) -> Result<Vec<MessageId>, AppendError>;
}

/// A driver, and where in a test binary its tests are.
#[derive(Clone, Copy)]
pub struct Driver {
    driver: &'static dyn SqliteDriver,
    pub(crate) place: &'static str,
}

impl Driver {
    /// The driver, where `module_path!()` says `place`.
    pub fn of<D: SqliteDriver + Default>(place: &'static str) -> Self {
        // A driver has no fields, so that nothing is kept.
        Self { driver: Box::leak(Box::<D>::default()), place }
    }

    /// What a store is called in reports: marking, deleting, in memory.
    pub fn names(self) -> [&'static str; 3] {
        self.driver.names()
    }

    /// The statements that make a table.
    ///
    /// # Errors
    /// The ORM's own, where SQLite cannot hold such a table.
    pub fn ddl(self, table: OutboxTable) -> Result<String, InvalidTable> {
        self.driver.ddl(table)
    }

    /// A store with connections of its own, as another process has it.
    pub fn store(self, open: &Open, table: OutboxTable) -> AnyStore {
        self.driver.store(open, table)
    }

    /// An application's own connection.
    pub async fn connect(self, open: &Open) -> Box<dyn Application> {
        self.driver.connect(open).await
    }

    /// Makes a table.
    pub(crate) async fn create(self, connection: &mut SqliteConnection, table: &OutboxTable) {
        let ddl = self.ddl(table.clone()).expect("a valid table");
        sqlx::raw_sql(AssertSqlSafe(ddl)).execute(connection).await.expect("the table is made");
    }
}
