//! Outbox stores on [sqlx](sqlx): PostgreSQL (feature `postgres`) and SQLite (feature `sqlite`).
//!
//! Neither feature is on by default, and neither brings a TLS library or chooses sqlx's runtime: the
//! application does that, with its own dependency on sqlx. Both need a tokio runtime.
//!
//! Who knows one of the modules knows both: a table (`PostgresTable`, `SqliteTable`) appends messages on the
//! caller's own connection, a store (`PostgresStore`, `SqliteStore`) is what the relay reads from.

mod error;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use outbox_sql::{Columns, InvalidMessage, InvalidTable, OutboxTable, PayloadType, TimeType};

pub use crate::error::AppendError;
