//! The shop's database: its orders and their outbox. Whoever plays the demo knows neither the database nor the ORM.

use std::fmt::Debug;
use std::sync::Arc;

use anyhow::Result;
use outbox_core::{Inspect, MessageId, NewMessage, async_trait};

/// The database, opened by one process.
#[async_trait]
pub trait Database: Debug + Send + Sync {
    /// Makes the tables.
    ///
    /// # Errors
    /// If the database does not do it.
    async fn create(&self) -> Result<()>;

    /// Removes the tables from a server; a file is removed with its folder.
    ///
    /// # Errors
    /// If the database does not do it.
    async fn remove(&self) -> Result<()>;

    /// What a relay reads from.
    ///
    /// # Errors
    /// If the table cannot be described.
    fn store(&self) -> Result<Arc<dyn Inspect>>;

    /// Whether two transactions can write at once, so that one can commit later than the other's later row.
    fn has_concurrent_writers(&self) -> bool;

    /// Begins a transaction of the application.
    ///
    /// # Errors
    /// If the database does not do it.
    async fn begin(&self) -> Result<Box<dyn Transaction>>;
}

/// A transaction of the application: nothing of it is seen before it commits.
#[async_trait]
pub trait Transaction: Send {
    /// Writes an order and, beside it, the message that tells of it.
    ///
    /// # Errors
    /// If the database does not do it.
    async fn place(&mut self, number: i64, message: &NewMessage) -> Result<MessageId>;

    /// Makes it seen.
    ///
    /// # Errors
    /// If the database does not do it.
    async fn commit(self: Box<Self>) -> Result<()>;

    /// Takes it back, as if it had never been.
    ///
    /// # Errors
    /// If the database does not do it.
    async fn roll_back(self: Box<Self>) -> Result<()>;
}

/// The columns of the orders.
pub const ORDERS: &str = "(number bigint PRIMARY KEY, customer varchar(100) NOT NULL)";
