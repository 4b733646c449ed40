//! The shop on PostgreSQL, by sqlx.

use std::sync::Arc;

use anyhow::Result;
use outbox_core::{Inspect, MessageId, NewMessage, async_trait};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::{PostgresStore, PostgresTable};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Postgres};

use crate::database::{Database, ORDERS, Transaction};

#[derive(Debug)]
pub(super) struct Shop {
    pool: PgPool,
    table: PostgresTable,
    schema: String,
}

impl Shop {
    pub(super) async fn open(schema: &str, url: &str) -> Result<Self> {
        let pool = PgPoolOptions::new().max_connections(6).connect(url).await?;
        let table = PostgresTable::new(OutboxTable::default().with_schema(schema))?;
        Ok(Self { pool, table, schema: schema.to_owned() })
    }
}

#[async_trait]
impl Database for Shop {
    async fn create(&self) -> Result<()> {
        let Self { schema, table, .. } = self;
        let statements =
            format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.orders {ORDERS}; {}", table.ddl());
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&self.pool).await?;
        Ok(())
    }

    async fn remove(&self) -> Result<()> {
        let statement = format!("DROP SCHEMA {} CASCADE", self.schema);
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&self.pool).await?;
        Ok(())
    }

    fn store(&self) -> Result<Arc<dyn Inspect>> {
        Ok(Arc::new(PostgresStore::new(self.pool.clone(), self.table.description().clone())?))
    }

    fn has_concurrent_writers(&self) -> bool {
        true
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        let insert = format!("INSERT INTO {}.orders (number, customer) VALUES ($1, $2)", self.schema);
        Ok(Box::new(Open { inner: self.pool.begin().await?, table: self.table.clone(), insert }))
    }
}

struct Open {
    inner: sqlx::Transaction<'static, Postgres>,
    table: PostgresTable,
    insert: String,
}

#[async_trait]
impl Transaction for Open {
    async fn place(&mut self, number: i64, message: &NewMessage) -> Result<MessageId> {
        let insert = sqlx::query(AssertSqlSafe(self.insert.clone()));
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
