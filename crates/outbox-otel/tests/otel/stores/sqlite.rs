//! A SQLite database in a file.

use outbox_core::{MessageId, NewMessage};
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use outbox_sqlx::{AppendError, OutboxTable};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tempfile::TempDir;

/// A database with an outbox table.
pub(crate) struct Database {
    pool: SqlitePool,
    table: SqliteTable,
    _directory: TempDir,
}

impl Database {
    pub(crate) async fn create(table: OutboxTable) -> Self {
        let directory = TempDir::new().expect("a directory");
        let options = SqliteConnectOptions::new().filename(directory.path().join("shop.db"));
        let pool = SqlitePoolOptions::new().connect_lazy_with(options.create_if_missing(true));
        let table = SqliteTable::new(table).expect("a valid table");
        table.create(&mut pool.acquire().await.expect("a connection")).await.expect("the table is made");
        Self { pool, table, _directory: directory }
    }

    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::new(self.pool.clone(), self.table.description().clone()).expect("a valid table")
    }

    /// Appends in a transaction, as an application does.
    pub(crate) async fn append(&self, messages: &[NewMessage]) -> Result<Vec<MessageId>, AppendError> {
        let mut transaction = self.pool.begin().await.expect("a transaction");
        let ids = self.table.append_all(&mut transaction, messages).await?;
        transaction.commit().await.expect("it commits");
        Ok(ids)
    }
}
