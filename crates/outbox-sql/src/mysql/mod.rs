//! MySQL and MariaDB: their statements, the store over any driver, how a tenant is locked, what their errors mean, and
//! what the tables and their server must be like.

#[doc(hidden)]
pub mod check;
mod claim;
#[doc(hidden)]
pub mod driver;
#[doc(hidden)]
pub mod error;
mod lock;
mod probe;
pub mod schema;
mod server;
mod statements;
mod store;
mod transaction;
mod walk;

use self::server::{ASK_SERVER, KnownServer, turns};
#[doc(hidden)]
pub use self::statements::{APPENDED, ID_STEP, append, chunks, ids, micros};
pub use self::statements::{MySqlStatements, SENTINEL, json_tenants};
#[doc(hidden)]
pub use self::store::MySqlStore;
use self::transaction::{BeginClaim, COMMIT, ROLLBACK, VERIFY, begin_claim};
use self::walk::{Walk, WalkedTenant};
