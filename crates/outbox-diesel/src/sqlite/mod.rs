//! SQLite.
//!
//! [`SqliteTable`] appends messages on the application's own connection, in its transaction; [`SqliteStore`]
//! is a relay's store, on [`SqliteConnections`].

mod append;
mod connection;
mod driver;
mod error;
#[cfg(any(feature = "bb8", feature = "deadpool"))]
mod pool;
mod row;
pub mod schema;
mod store;

pub use outbox_sql::check::{Finding, Severity};

pub use self::append::{SqliteAppend, SqliteAppendAll, SqliteTable};
pub use self::connection::{SqliteConnections, SqliteConnector};
pub use self::store::SqliteStore;
