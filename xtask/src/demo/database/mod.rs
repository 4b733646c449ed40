//! The shop's database: its orders and their outbox. One file for each database and ORM; whoever plays the demo
//! knows neither.

#[cfg(all(feature = "demo-diesel", feature = "demo-mysql"))]
mod diesel_mysql;
#[cfg(feature = "demo-diesel")]
mod diesel_postgres;
#[cfg(feature = "demo-diesel")]
mod diesel_sqlite;
#[cfg(feature = "demo-mysql")]
mod sqlx_mysql;
mod sqlx_postgres;
mod sqlx_sqlite;
mod target;

use std::fmt::Debug;
use std::sync::Arc;

use anyhow::Result;
use outbox_core::{MessageId, NewMessage, Store, async_trait};

pub(super) use self::target::{Orm, Place, TARGET, Target};

/// The database, opened by one process.
#[async_trait]
pub(super) trait Database: Debug + Send + Sync {
    /// Makes the tables.
    async fn create(&self) -> Result<()>;

    /// Removes the tables from a server; a file is removed with its folder.
    async fn remove(&self) -> Result<()>;

    /// What a relay reads from.
    fn store(&self) -> Result<Arc<dyn Store>>;

    /// Whether two transactions can write at once, so that one can commit later than the other's later row.
    fn has_concurrent_writers(&self) -> bool;

    /// Begins a transaction of the application.
    async fn begin(&self) -> Result<Box<dyn Transaction>>;
}

/// A transaction of the application: nothing of it is seen before it commits.
#[async_trait]
pub(super) trait Transaction: Send {
    /// Writes an order and, beside it, the message that tells of it.
    async fn place(&mut self, number: i64, message: &NewMessage) -> Result<MessageId>;

    async fn commit(self: Box<Self>) -> Result<()>;

    async fn roll_back(self: Box<Self>) -> Result<()>;
}

/// The columns of the orders.
const ORDERS: &str = "(number bigint PRIMARY KEY, customer varchar(100) NOT NULL)";

/// Opens what a target names.
pub(super) async fn open(target: &Target) -> Result<Box<dyn Database>> {
    Ok(match (target.orm, &target.place) {
        (Orm::Sqlx, Place::Sqlite(path)) => Box::new(sqlx_sqlite::Shop::open(path).await?),
        (Orm::Sqlx, Place::Postgres { schema, url }) => {
            Box::new(sqlx_postgres::Shop::open(schema, url).await?)
        }
        #[cfg(feature = "demo-mysql")]
        (Orm::Sqlx, Place::MySql { database, url }) => Box::new(sqlx_mysql::Shop::open(database, url).await?),
        #[cfg(feature = "demo-diesel")]
        (Orm::Diesel, Place::Sqlite(path)) => Box::new(diesel_sqlite::Shop::open(path)?),
        #[cfg(feature = "demo-diesel")]
        (Orm::Diesel, Place::Postgres { schema, url }) => {
            Box::new(diesel_postgres::Shop::open(schema, url).await?)
        }
        #[cfg(all(feature = "demo-diesel", feature = "demo-mysql"))]
        (Orm::Diesel, Place::MySql { database, url }) => {
            Box::new(diesel_mysql::Shop::open(database, url).await?)
        }
        // The command runs itself again with the feature before it comes here.
        #[cfg(not(feature = "demo-diesel"))]
        (Orm::Diesel, _) => anyhow::bail!("--orm diesel needs an xtask with the feature demo-diesel"),
    })
}
