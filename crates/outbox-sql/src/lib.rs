//! What the outbox's SQL stores share, once: no driver, no connection.
//!
//! [`OutboxTable`] describes a table. [`postgres`], [`mysql`] and [`sqlite`] have what is of one database: its
//! statements, generated once, its DDL, its lock keys, and its store over any driver. Beside them is what all have in
//! common: [`row`] turns what a driver reads into messages, and [`append`] checks what is written.
//!
//! What these pages leave out is public for the crates of the ORMs alone (`driver`, each database's store), and
//! may change with any version.

pub mod append;
pub mod check;
mod claim;
mod deadline;
pub mod dialect;
#[doc(hidden)]
pub mod driver;
pub mod file_lock;
mod hash;
pub mod headers;
pub mod identifier;
pub mod meaning;
pub mod mysql;
mod named;
pub mod postgres;
pub mod row;
mod settlement;
pub mod sqlite;
mod store;
pub mod table;

pub use crate::append::{AppendError, InvalidMessage};
pub use crate::dialect::Dialect;
pub use crate::meaning::Meaning;
pub use crate::table::{Columns, InvalidTable, OutboxTable, PayloadType, TimeType};
