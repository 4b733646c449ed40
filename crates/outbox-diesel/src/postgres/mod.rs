//! PostgreSQL.
//!
//! [`PostgresTable`] appends messages on the application's own connection, in its transaction.

mod append;
mod error;

pub use self::append::{PostgresAppend, PostgresAppendAll, PostgresTable};
