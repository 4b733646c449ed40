//! MySQL and MariaDB: their statements, how a tenant is locked, what their errors mean, and what the tables and their
//! server must be like.

pub mod check;
pub mod claim;
pub mod error;
mod lock;
pub mod schema;
mod server;
mod statements;
mod transaction;
mod walk;

pub use self::lock::Locking;
pub use self::server::{ASK_SERVER, KnownServer, turns};
pub use self::statements::{
    APPENDED, ID_STEP, MySqlStatements, SENTINEL, append, chunks, ids, json_tenants, micros,
};
pub use self::transaction::{BeginClaim, COMMIT, ROLLBACK, VERIFY, begin_claim};
pub use self::walk::{Walk, WalkedTenant};
pub use crate::json::json_ids;
