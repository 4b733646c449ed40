//! The shop on SQLite, by Diesel: the application's connections are synchronous ones.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use demo::database::{Database, ORDERS, Transaction};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::{BigInt, Text};
use diesel::{Connection as _, RunQueryDsl as _, SqliteConnection};
use outbox_core::{Inspect, MessageId, NewMessage, async_trait};
use outbox_diesel::OutboxTable;
use outbox_diesel::sqlite::{SqliteConnector, SqliteStore, SqliteTable};
use tokio::task::block_in_place;

#[derive(Debug)]
pub(super) struct Shop {
    path: String,
    table: SqliteTable,
}

impl Shop {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let path = path.to_str().context("Diesel takes a path that is UTF-8: set TMPDIR")?.to_owned();
        Ok(Self { path, table: SqliteTable::new(OutboxTable::default())? })
    }

    fn connect(&self) -> Result<SqliteConnection> {
        let mut connection = SqliteConnection::establish(&self.path)?;
        connection.batch_execute("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL")?;
        Ok(connection)
    }
}

#[async_trait]
impl Database for Shop {
    async fn create(&self) -> Result<()> {
        let statements = format!("CREATE TABLE orders {ORDERS}; {}", self.table.ddl());
        block_in_place(|| Ok(self.connect()?.batch_execute(&statements)?))
    }

    async fn remove(&self) -> Result<()> {
        Ok(())
    }

    fn store(&self) -> Result<Arc<dyn Inspect>> {
        let connector = SqliteConnector::new(&self.path);
        Ok(Arc::new(SqliteStore::new(connector, self.table.description().clone())?))
    }

    fn has_concurrent_writers(&self) -> bool {
        false
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        let mut connection = block_in_place(|| self.connect())?;
        block_in_place(|| connection.batch_execute("BEGIN IMMEDIATE"))?;
        Ok(Box::new(Open { connection, table: self.table.clone() }))
    }
}

struct Open {
    connection: SqliteConnection,
    table: SqliteTable,
}

#[async_trait]
impl Transaction for Open {
    async fn place(&mut self, number: i64, message: &NewMessage) -> Result<MessageId> {
        let insert = diesel::sql_query("INSERT INTO orders (number, customer) VALUES (?, ?)")
            .bind::<BigInt, _>(number)
            .bind::<Text, _>(message.tenant_id.as_str());
        block_in_place(|| {
            insert.execute(&mut self.connection)?;
            Ok(self.table.append(message).execute(&mut self.connection)?)
        })
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        Ok(block_in_place(|| self.connection.batch_execute("COMMIT"))?)
    }

    async fn roll_back(mut self: Box<Self>) -> Result<()> {
        Ok(block_in_place(|| self.connection.batch_execute("ROLLBACK"))?)
    }
}
