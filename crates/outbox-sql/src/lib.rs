//! What the outbox's SQL stores share, once: no driver, no connection.
//!
//! [`OutboxTable`] describes a table; [`dialect`] has each database's statements for it, generated once;
//! [`row`] turns what a driver reads into messages, [`append`] checks what is written, and
//! [`settlement`] what is marked; [`claim`] is how a session holds a tenant; [`deadline`] bounds an operation;
//! [`named`] is how tenants are looked for by name; [`lock_key`] is the registry of the keys that replicas exclude each
//! other by, [`wake`] the hint that there is something new, and [`sqlite`] what holds a tenant where there is no server.

pub mod append;
pub mod check;
pub mod claim;
pub mod deadline;
pub mod dialect;
pub mod file_lock;
mod hash;
pub mod headers;
pub mod identifier;
pub mod lock_key;
pub mod meaning;
pub mod named;
pub mod row;
pub mod schema;
pub mod settlement;
pub mod sqlite;
pub mod table;
pub mod wake;

pub use crate::append::{AppendError, InvalidMessage};
pub use crate::dialect::Dialect;
pub use crate::meaning::Meaning;
pub use crate::table::{Columns, InvalidTable, OutboxTable, PayloadType, TimeType};
