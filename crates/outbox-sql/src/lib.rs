//! What the outbox's SQL stores share, once: no driver, no connection.
//!
//! [`OutboxTable`] describes a table. [`postgres`], [`mysql`] and [`sqlite`] have what is of one database: its
//! statements, generated once, its DDL, its lock keys, what its errors mean. Beside them is what all have in common:
//! [`row`] turns what a driver reads into messages, [`append`] checks what is written, and [`settlement`] what is
//! marked; [`claim`] is how a session holds a tenant; [`deadline`] bounds an operation; [`named`] is how tenants are
//! looked for by name.

pub mod append;
pub mod check;
pub mod claim;
pub mod deadline;
pub mod dialect;
pub mod file_lock;
mod hash;
pub mod headers;
pub mod identifier;
mod json;
pub mod meaning;
pub mod mysql;
pub mod named;
pub mod postgres;
pub mod row;
pub mod settlement;
pub mod sqlite;
pub mod table;

pub use crate::append::{AppendError, InvalidMessage};
pub use crate::dialect::Dialect;
pub use crate::meaning::Meaning;
pub use crate::table::{Columns, InvalidTable, OutboxTable, PayloadType, TimeType};
