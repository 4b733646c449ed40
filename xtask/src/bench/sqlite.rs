//! A SQLite database of the bench's own: WAL, and every commit on the disk.

use std::time::Duration;

use anyhow::{Result, ensure};
use outbox_core::{MessageId, NewMessage, TenantId};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::bed::PAYLOAD;
use crate::servers::Folder;

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
        let pool = SqlitePoolOptions::new().max_connections(6).connect_with(options).await?;
        let table = SqliteTable::new(OutboxTable::default())?;
        let mut connection = pool.acquire().await?;
        table.create(&mut connection).await?;
        drop(connection);
        Ok(Self { pool, table, folder })
    }

    pub(super) fn url(&self) -> String {
        format!("sqlite:{}", self.folder.path().join("outbox.db").display())
    }

    pub(super) fn store(&self) -> Result<SqliteStore> {
        Ok(SqliteStore::new(self.pool.clone(), OutboxTable::default())?)
    }

    /// Empties the table and appends messages of the tenants in turn; answers their ids.
    pub(super) async fn fill(&self, rows: usize, tenants: usize) -> Result<Vec<i64>> {
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

    /// Checks that nothing is pending.
    pub(super) async fn expect_drained(&self) -> Result<()> {
        let pending: i64 =
            sqlx::query_scalar("SELECT count(*) FROM outbox_message WHERE published_at IS NULL")
                .fetch_one(&self.pool)
                .await?;
        ensure!(pending == 0, "{pending} messages are still pending");
        Ok(())
    }
}

/// Messages of the tenants in turn, as large as everywhere.
pub(super) fn messages(rows: usize, tenants: usize) -> Result<Vec<NewMessage>> {
    let message = |number: usize| {
        let tenant = TenantId::new(format!("tenant-{}", number % tenants))?;
        let subject = format!("order-{}", number % 1_000);
        Ok(NewMessage::new(tenant, "order.placed", subject, vec![b' '; PAYLOAD]))
    };
    (0..rows).map(message).collect()
}
