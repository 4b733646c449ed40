//! Outbox stores on [`sqlx`]: PostgreSQL (feature `postgres`), MySQL and MariaDB (feature `mysql`), and SQLite
//! (feature `sqlite`).
//!
//! No feature is on by default, and none brings a TLS library or chooses sqlx's runtime: the application does
//! that, with its own dependency on sqlx. All need a tokio runtime.
//!
//! Who knows one of the modules knows all: a table (`PostgresTable`, `MySqlTable`, `SqliteTable`) appends
//! messages on the caller's own connection, a relay is built with a store (`PostgresStore`, `MySqlStore`,
//! `SqliteStore`).

#[cfg(any(feature = "postgres", feature = "mysql"))]
mod connection;
mod error;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod runtime;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use outbox_sql::{Columns, InvalidMessage, InvalidTable, OutboxTable, PayloadType, TimeType};

pub use crate::error::AppendError;

/// What the README and the pages of `docs/` show, compiled and run.
#[cfg(all(doctest, feature = "postgres", feature = "sqlite"))]
mod samples {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/guarantees.md")]
    mod guarantees {}
    #[doc = include_str!("../../../docs/operate.md")]
    mod operate {}
    #[doc = include_str!("../../../docs/ordering.md")]
    mod ordering {}
    #[doc = include_str!("../../../docs/schema.md")]
    mod schema {}
    #[doc = include_str!("../../../docs/wake-ups.md")]
    mod wake_ups {}
}
