//! What MySQL's and MariaDB's stores are tested with.

mod database;
pub(crate) mod faults;
mod harness;
mod list;
mod server;
pub(crate) mod store;

pub use self::database::{Database, STORE, WRITER};
pub use self::harness::{OnMySql, Settings};
#[doc(hidden)]
pub use self::list::tests;

/// How the stores and the pools of an ORM are made on MySQL and MariaDB, and where in a test binary its tests are.
pub type Driver = crate::server::Driver<Database>;

/// An outbox table of MySQL's or MariaDB's in a database of its own.
pub type Stage = crate::server::Stage<Database>;
