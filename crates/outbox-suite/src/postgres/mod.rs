//! What PostgreSQL's stores are tested with.

mod database;
pub(crate) mod faults;
mod harness;
mod list;
mod proxy;
mod server;
pub(crate) mod store;

pub use self::database::{Database, ROLE, STORE, eager};
pub use self::harness::{OnPostgres, Settings};
#[doc(hidden)]
pub use self::list::tests;

/// How the stores and the pools of an ORM are made on PostgreSQL, and where in a test binary its tests are.
pub type Driver = crate::server::Driver<Database>;

/// An outbox table of PostgreSQL's in a database of its own.
pub type Stage = crate::server::Stage<Database>;
