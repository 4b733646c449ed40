//! PostgreSQL.
//!
//! [`PostgresTable`] appends messages on the application's own connection, in its transaction;
//! [`PostgresStore`] is what the relay reads from.

mod append;
mod claim;
mod connection;
mod error;
mod row;
mod store;

pub use self::append::PostgresTable;
pub use self::store::PostgresStore;
