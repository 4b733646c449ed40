//! Every store, each on a database that is filled and looked at in the same way.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use outbox_core::{MessageId, NewMessage, Store, TenantId};
use outbox_memory::MemoryStore;

use super::bed::{Bed, PAYLOAD};
use super::by_diesel;
use super::mariadb::MariaBed;
use super::sqlite::SqliteBed;
use super::writer::Outbox;

/// The connections of a store's pool: for the relay's claims, its probe and its health check.
pub(super) const CONNECTIONS: u32 = 6;

/// A database with an outbox table, whatever stores are on it.
#[async_trait]
pub(super) trait Database: Send + Sync {
    /// How another process gets to it; `None` if none does.
    fn url(&self) -> Option<String>;

    /// What this process appends with.
    async fn outbox(&self) -> Result<Outbox> {
        Outbox::open(&self.url().context("this database has no address")?).await
    }

    /// Empties the table and appends messages of the tenants in turn; answers their ids.
    async fn refill(&self, rows: usize, tenants: usize) -> Result<Vec<i64>>;

    /// Checks that so many rows are there, and all of them marked.
    async fn expect_published(&self, rows: usize) -> Result<()>;
}

/// A store, and the database that it is on.
pub(super) struct Lane {
    pub(super) name: &'static str,
    pub(super) database: Arc<dyn Database>,
    pub(super) store: Arc<dyn Store>,
}

impl Lane {
    fn new<D: Database + 'static>(name: &'static str, database: &Arc<D>, store: impl Store) -> Self {
        let database: Arc<dyn Database> = Arc::<D>::clone(database);
        Self { name, database, store: Arc::new(store) }
    }
}

/// Every store, on this PostgreSQL server and on databases of their own.
pub(super) async fn all(postgres: &Arc<Bed>) -> Result<Vec<Lane>> {
    let (sqlite, mariadb) = (Arc::new(SqliteBed::create().await?), Arc::new(MariaBed::start().await?));
    let memory = Arc::new(MemoryStore::new());
    let mut lanes = vec![Lane::new("PostgreSQL, sqlx", postgres, postgres.store(CONNECTIONS).await?)];
    lanes.push(Lane::new("PostgreSQL, Diesel", postgres, by_diesel::on_postgres(postgres).await?));
    lanes.push(Lane::new("SQLite, sqlx", &sqlite, sqlite.store()?));
    lanes.push(Lane::new("SQLite, Diesel", &sqlite, by_diesel::on_sqlite(&sqlite)?));
    lanes.push(Lane::new("MariaDB, sqlx", &mariadb, mariadb.store().await?));
    lanes.push(Lane::new("MariaDB, Diesel", &mariadb, by_diesel::on_mariadb(&mariadb).await?));
    lanes.push(Lane::new("memory", &memory, (*memory).clone()));
    Ok(lanes)
}

#[async_trait]
impl Database for MemoryStore {
    fn url(&self) -> Option<String> {
        None
    }

    async fn outbox(&self) -> Result<Outbox> {
        Ok(Outbox::Memory(self.clone()))
    }

    async fn refill(&self, rows: usize, tenants: usize) -> Result<Vec<i64>> {
        self.purge_published();
        Ok(self.append_all(messages(rows, tenants)?).into_iter().map(MessageId::get).collect())
    }

    async fn expect_published(&self, rows: usize) -> Result<()> {
        let published = self.published().len();
        expect(rows, (i64::try_from(published + self.unpublished().len())?, i64::try_from(published)?))
    }
}

/// Checks that the rows which are there, and those of them that are marked, are so many.
pub(super) fn expect(rows: usize, (there, marked): (i64, i64)) -> Result<()> {
    let rows = i64::try_from(rows)?;
    ensure!((there, marked) == (rows, rows), "of {rows} rows {there} are there, and {marked} marked");
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A drain that marked too little, or lost a row, fails.
    #[test]
    fn what_is_not_marked_is_an_error() {
        assert!(expect(2, (2, 2)).is_ok());
        assert!(expect(2, (2, 1)).is_err());
        assert!(expect(2, (1, 1)).is_err());
        assert!(expect(2, (3, 3)).is_err());
    }
}
