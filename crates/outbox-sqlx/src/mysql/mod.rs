//! MySQL and MariaDB.
//!
//! [`MySqlTable`] appends messages on the application's own connection, in its transaction; [`MySqlStore`] is
//! a relay's store.

mod append;
mod driver;
mod error;
mod row;
mod store;

pub use outbox_sql::check::{Finding, Severity};

pub use self::append::MySqlTable;
pub use self::store::MySqlStore;
