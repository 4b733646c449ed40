//! PostgreSQL.
//!
//! [`PostgresTable`] appends messages on the application's own connection, in its transaction;
//! `PostgresStore` (feature `async`) is a relay's store.

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
#[cfg(feature = "async")]
pub use outbox_sql::postgres::Durability;
#[cfg(feature = "async")]
pub use outbox_sql::postgres::watermark::Watermark;

pub use self::append::{PostgresAppend, PostgresAppendAll, PostgresTable};
#[cfg(feature = "async")]
pub use self::store::PostgresStore;
