//! The shop on SQLite, by sqlx.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use outbox_core::{Inspect, MessageId, NewMessage, async_trait};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Sqlite};

use crate::database::{Database, ORDERS, Transaction};

#[derive(Debug)]
pub(super) struct Shop {
    pool: SqlitePool,
    table: SqliteTable,
}

impl Shop {
    pub(super) async fn open(path: &Path) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePoolOptions::new().max_connections(6).connect_with(options).await?;
        Ok(Self { pool, table: SqliteTable::new(OutboxTable::default())? })
    }
}

#[async_trait]
impl Database for Shop {
    async fn create(&self) -> Result<()> {
        let statements = format!("CREATE TABLE orders {ORDERS}; {}", self.table.ddl());
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&self.pool).await?;
        Ok(())
    }

    async fn remove(&self) -> Result<()> {
        Ok(())
    }

    fn store(&self) -> Result<Arc<dyn Inspect>> {
        Ok(Arc::new(SqliteStore::new(self.pool.clone(), self.table.description().clone())?))
    }

    fn has_concurrent_writers(&self) -> bool {
        false
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        let inner = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        Ok(Box::new(Open { inner, table: self.table.clone() }))
    }
}

struct Open {
    inner: sqlx::Transaction<'static, Sqlite>,
    table: SqliteTable,
}

#[async_trait]
impl Transaction for Open {
    async fn place(&mut self, number: i64, message: &NewMessage) -> Result<MessageId> {
        let insert = sqlx::query("INSERT INTO orders (number, customer) VALUES ($1, $2)");
        insert.bind(number).bind(message.tenant_id.as_str()).execute(&mut *self.inner).await?;
        Ok(self.table.append(&mut self.inner, message).await?)
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        Ok(self.inner.commit().await?)
    }

    async fn roll_back(self: Box<Self>) -> Result<()> {
        Ok(self.inner.rollback().await?)
    }
}
