//! A SQLite database of the bench's own: WAL, and every commit on the disk.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use outbox_core::MessageId;
use outbox_sqlx::OutboxTable;
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::lanes::{CONNECTIONS, Database, expect, messages};
use servers::Folder;

/// The database, in a folder that is removed with it.
#[derive(Debug)]
pub(super) struct SqliteBed {
    pool: SqlitePool,
    table: SqliteTable,
    folder: Folder,
}

impl SqliteBed {
    pub(super) async fn create() -> Result<Self> {
        let folder = Folder::new("bench")?;
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("outbox.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await?;
        let table = SqliteTable::new(OutboxTable::default())?;
        let mut connection = pool.acquire().await?;
        table.create(&mut connection).await?;
        drop(connection);
        Ok(Self { pool, table, folder })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("outbox.db")
    }

    pub(super) fn store(&self) -> Result<SqliteStore> {
        Ok(SqliteStore::new(self.pool.clone(), OutboxTable::default())?)
    }
}

#[async_trait]
impl Database for SqliteBed {
    fn url(&self) -> Option<String> {
        Some(format!("sqlite:{}", self.path().display()))
    }

    async fn refill(&self, rows: usize, tenants: usize) -> Result<Vec<i64>> {
        sqlx::query("DELETE FROM outbox_message").execute(&self.pool).await?;
        let mut transaction = self.pool.begin().await?;
        let messages = messages(rows, tenants)?;
        let mut ids = Vec::with_capacity(rows);
        for some in messages.chunks(1_000) {
            let some = self.table.append_all(&mut transaction, some).await?;
            ids.extend(some.into_iter().map(MessageId::get));
        }
        transaction.commit().await?;
        Ok(ids)
    }

    async fn expect_published(&self, rows: usize) -> Result<()> {
        let count = "SELECT count(*), count(published_at) FROM outbox_message";
        expect(rows, sqlx::query_as(count).fetch_one(&self.pool).await?)
    }
}
