//! A MariaDB server of the bench's own, with every commit on the disk.

use anyhow::{Result, ensure};
use outbox_core::MessageId;
use outbox_sqlx::OutboxTable;
use outbox_sqlx::mysql::{MySqlStore, MySqlTable};
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};

use super::sqlite::messages;
use crate::servers::MariaDb;
use crate::servers::install::Program;

/// Its database.
pub(super) const DATABASE: &str = "bench";

/// The server and its table.
#[derive(Debug)]
pub(super) struct MariaBed {
    server: MariaDb,
    admin: MySqlPool,
    table: MySqlTable,
}

impl MariaBed {
    pub(super) async fn start() -> Result<Self> {
        Program::MariaDb.ensure()?;
        let server = MariaDb::start(&[
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_flush_method", "fsync"),
            ("innodb_buffer_pool_size", "128M"),
            ("innodb_log_file_size", "256M"),
        ])?;
        server.create_database(DATABASE)?;
        let admin = MySqlPoolOptions::new().max_connections(2).connect(&server.url(DATABASE)).await?;
        let table = MySqlTable::new(OutboxTable::default().with_schema(DATABASE))?;
        let mut connection = admin.acquire().await?;
        table.create(&mut connection).await?;
        drop(connection);
        Ok(Self { server, admin, table })
    }

    pub(super) fn url(&self) -> String {
        self.server.url(DATABASE)
    }

    pub(super) async fn store(&self) -> Result<MySqlStore> {
        let pool = MySqlPoolOptions::new().max_connections(6).min_connections(6).connect(&self.url()).await?;
        Ok(MySqlStore::new(pool, self.table.description().clone())?)
    }

    /// Empties the table and appends messages of the tenants in turn; answers their ids.
    pub(super) async fn fill(&self, rows: usize, tenants: usize) -> Result<Vec<i64>> {
        sqlx::query("TRUNCATE bench.outbox_message").execute(&self.admin).await?;
        let mut transaction = self.admin.begin().await?;
        let mut ids = Vec::with_capacity(rows);
        for some in messages(rows, tenants)?.chunks(1_000) {
            let some = self.table.append_all(&mut transaction, some).await?;
            ids.extend(some.into_iter().map(MessageId::get));
        }
        transaction.commit().await?;
        Ok(ids)
    }

    /// Checks that nothing is pending.
    pub(super) async fn expect_drained(&self) -> Result<()> {
        let count = "SELECT count(*) FROM bench.outbox_message WHERE published_at IS NULL";
        let pending: i64 = sqlx::query_scalar(count).fetch_one(&self.admin).await?;
        ensure!(pending == 0, "{pending} messages are still pending");
        Ok(())
    }
}
