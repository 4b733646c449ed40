//! What SQLite's stores are tested with.

mod database;
mod driver;
mod faults;
mod harness;
mod list;
mod store;

pub use self::database::{
    FileDatabase, Open, claim, errors, ids, lock_files, message, polled, request, tenant, try_claim,
};
pub use self::driver::{Application, Driver, SqliteDriver};
pub use self::harness::On;
#[doc(hidden)]
pub use self::list::tests;
