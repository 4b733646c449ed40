//! PostgreSQL.
//!
//! [`PostgresTable`] appends messages on the application's own connection, in its transaction;
//! [`PostgresStore`] is what the relay reads from.

mod append;
mod check;
mod claim;
mod connection;
mod error;
mod row;
mod store;

pub use outbox_sql::check::{Finding, Severity};

pub use self::append::PostgresTable;
pub use self::store::PostgresStore;
