//! A MariaDB server of the bench's own, with every commit on the disk.

use anyhow::Result;
use async_trait::async_trait;
use outbox_core::MessageId;
use outbox_sqlx::OutboxTable;
use outbox_sqlx::mysql::{MySqlStore, MySqlTable};
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};

use super::lanes::{CONNECTIONS, Database, expect, messages};
use servers::MariaDb;
use servers::install::Program;

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

    pub(super) async fn store(&self) -> Result<MySqlStore> {
        let pool = MySqlPoolOptions::new()
            .max_connections(CONNECTIONS)
            .min_connections(CONNECTIONS)
            .connect(&self.server.url(DATABASE))
            .await?;
        Ok(MySqlStore::new(pool, self.table.description().clone())?)
    }
}

#[async_trait]
impl Database for MariaBed {
    fn url(&self) -> Option<String> {
        Some(self.server.url(DATABASE))
    }

    async fn refill(&self, rows: usize, tenants: usize) -> Result<Vec<i64>> {
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

    async fn expect_published(&self, rows: usize) -> Result<()> {
        let count = "SELECT count(*), count(published_at) FROM bench.outbox_message";
        expect(rows, sqlx::query_as(count).fetch_one(&self.admin).await?)
    }
}
