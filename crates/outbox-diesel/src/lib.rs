//! Outbox stores on [`diesel`]: PostgreSQL (feature `postgres`), MySQL and MariaDB (feature
//! `mysql`), and SQLite (feature `sqlite`).
//!
//! A table (`PostgresTable`, `MySqlTable`, `SqliteTable`) appends messages on the application's own connection, in its
//! transaction: a synchronous one of Diesel (`execute`) or, with the feature `async`, one of `diesel-async` (`execute_async`).
//! No feature is on by default, and none brings a client library written in C: that comes with the connection,
//! and the connection is the application's. SQLite is such a library itself: `sqlite` links the system's, and
//! `sqlite-bundled` builds it.
//!
//! A relay is built with a store (`PostgresStore`, `MySqlStore`, `SqliteStore`): on a pool of `diesel-async`, by
//! the features `bb8` and `deadpool`; SQLite's on connections of its own as well. It needs a tokio runtime, of either flavour.

#[cfg(all(feature = "async", any(feature = "postgres", feature = "mysql")))]
mod connection;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod error;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(all(feature = "async", any(feature = "postgres", feature = "mysql")))]
pub mod pool;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod statement;

pub use outbox_sql::{Columns, InvalidMessage, InvalidTable, OutboxTable, PayloadType, TimeType};

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub use crate::error::AppendError;

/// What the README shows, compiled.
#[cfg(all(doctest, feature = "postgres", feature = "sqlite", feature = "deadpool"))]
mod samples {
    #[doc = include_str!("../README.md")]
    mod readme {}
}
