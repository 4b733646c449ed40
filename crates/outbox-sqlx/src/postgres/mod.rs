//! PostgreSQL.
//!
//! [`PostgresTable`] appends messages on the application's own connection, in its transaction;
//! [`PostgresStore`] is a relay's store; [`PostgresListener`] and [`PostgresNotifier`] wake it from other
//! processes.

mod append;
mod driver;
mod error;
mod listen;
mod notify;
mod row;
mod store;

pub use outbox_sql::check::{Finding, Severity};
pub use outbox_sql::postgres::Durability;
pub use outbox_sql::postgres::watermark::Watermark;

pub use self::append::PostgresTable;
pub use self::listen::{PostgresListener, PostgresListening};
pub use self::notify::PostgresNotifier;
pub use self::store::PostgresStore;

type ArmedConnection = crate::connection::ArmedConnection<sqlx::Postgres>;
