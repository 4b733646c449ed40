//! SQLite.
//!
//! [`SqliteTable`] appends messages on the application's own connection, in its transaction; [`SqliteStore`]
//! is a relay's store.

mod append;
mod connection;
mod driver;
mod error;
mod mark;
mod row;
mod store;

pub use outbox_sql::check::{Finding, Severity};

pub use self::append::SqliteTable;
pub use self::store::SqliteStore;
