//! MySQL and MariaDB.
//!
//! [`MySqlTable`] appends messages on the application's own connection, in its transaction;
//! `MySqlStore` (feature `async`) is a relay's store.

mod append;
#[cfg(feature = "async")]
mod driver;
mod error;
#[cfg(feature = "async")]
mod row;
pub mod schema;
#[cfg(feature = "async")]
mod store;

#[cfg(feature = "async")]
pub use outbox_sql::check::{Finding, Severity};

pub use self::append::{MySqlAppend, MySqlAppendAll, MySqlTable};
#[cfg(feature = "async")]
pub use self::store::MySqlStore;
