//! Outbox stores on [`diesel`]: PostgreSQL (feature `postgres`).
//!
//! A table (`PostgresTable`) appends messages on the application's own connection, in its transaction: a
//! synchronous one of Diesel (`execute`) or, with the feature `async`, one of `diesel-async` (`execute_async`).
//! No feature is on by default, and none brings a client library written in C: that comes with the connection,
//! and the connection is the application's.

#[cfg(feature = "postgres")]
mod error;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "postgres")]
mod statement;

pub use outbox_sql::{Columns, InvalidMessage, InvalidTable, OutboxTable, PayloadType, TimeType};

#[cfg(feature = "postgres")]
pub use crate::error::AppendError;
