//! SQLite.
//!
//! [`SqliteTable`] appends messages on the application's own connection, in its transaction; [`SqliteStore`]
//! is a relay's store.

mod append;
mod check;
mod claim;
mod connection;
mod error;
mod mark;
mod place;
mod row;
mod store;
mod writable;

pub use outbox_sql::check::{Finding, Severity};

pub use self::append::SqliteTable;
pub use self::store::SqliteStore;
