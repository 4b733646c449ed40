//! The shop on MariaDB or MySQL, by Diesel: on diesel-async, with a pool of bb8.

use std::sync::Arc;

use anyhow::Result;
use demo::database::{Database, ORDERS, Transaction};
use diesel::sql_types::{BigInt, Text};
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::bb8::{Pool, PooledConnection};
use diesel_async::{
    AsyncConnection, AsyncMysqlConnection, RunQueryDsl as _, SimpleAsyncConnection as _, TransactionManager,
};
use outbox_core::{Inspect, MessageId, NewMessage, async_trait};
use outbox_diesel::OutboxTable;
use outbox_diesel::mysql::{MySqlStore, MySqlTable};

type Manager = <AsyncMysqlConnection as AsyncConnection>::TransactionManager;

#[derive(Debug)]
pub(super) struct Shop {
    pool: Pool<AsyncMysqlConnection>,
    table: MySqlTable,
    database: String,
}

impl Shop {
    pub(super) async fn open(database: &str, url: &str) -> Result<Self> {
        let manager = AsyncDieselConnectionManager::<AsyncMysqlConnection>::new(url);
        let pool = Pool::builder().max_size(6).build(manager).await?;
        let table = MySqlTable::new(OutboxTable::default().with_schema(database))?;
        Ok(Self { pool, table, database: database.to_owned() })
    }
}

#[async_trait]
impl Database for Shop {
    async fn create(&self) -> Result<()> {
        let Self { database, table, .. } = self;
        let statements =
            format!("CREATE DATABASE {database}; CREATE TABLE {database}.orders {ORDERS}; {}", table.ddl());
        Ok(self.pool.get().await?.batch_execute(&statements).await?)
    }

    async fn remove(&self) -> Result<()> {
        let statement = format!("DROP DATABASE {}", self.database);
        Ok(self.pool.get().await?.batch_execute(&statement).await?)
    }

    fn store(&self) -> Result<Arc<dyn Inspect>> {
        Ok(Arc::new(MySqlStore::new(self.pool.clone(), self.table.description().clone())?))
    }

    fn has_concurrent_writers(&self) -> bool {
        true
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        let mut connection = self.pool.get_owned().await?;
        Manager::begin_transaction(&mut *connection).await?;
        let insert = format!("INSERT INTO {}.orders (number, customer) VALUES (?, ?)", self.database);
        Ok(Box::new(Open { connection, table: self.table.clone(), insert }))
    }
}

struct Open {
    connection: PooledConnection<'static, AsyncMysqlConnection>,
    table: MySqlTable,
    insert: String,
}

#[async_trait]
impl Transaction for Open {
    async fn place(&mut self, number: i64, message: &NewMessage) -> Result<MessageId> {
        let insert = diesel::sql_query(&self.insert)
            .bind::<BigInt, _>(number)
            .bind::<Text, _>(message.tenant_id.as_str());
        insert.execute(&mut *self.connection).await?;
        Ok(self.table.append(message).execute_async(&mut *self.connection).await?)
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        Ok(Manager::commit_transaction(&mut *self.connection).await?)
    }

    async fn roll_back(mut self: Box<Self>) -> Result<()> {
        Ok(Manager::rollback_transaction(&mut *self.connection).await?)
    }
}
