//! PostgreSQL: its statements, the store over any driver, what its errors mean, and what a table and its server must be
//! like.

mod append;
#[doc(hidden)]
pub mod check;
mod claim;
#[doc(hidden)]
pub mod driver;
mod encoding;
#[doc(hidden)]
pub mod error;
mod lock;
pub mod lock_key;
mod probe;
#[cfg(test)]
mod qualified;
pub mod schema;
mod server;
mod statements;
mod store;
mod time;
mod transaction;
pub mod wake;
pub mod watermark;

#[doc(hidden)]
pub use self::append::{AppendArrays, PayloadArray};
pub use self::statements::{PostgresStatements, WatermarkStatements};
#[doc(hidden)]
pub use self::store::PostgresStore;
#[doc(hidden)]
pub use self::time::{TIME_OIDS, micros_since_1970};
pub use self::transaction::Durability;
use self::transaction::KnownTraits;
#[doc(hidden)]
pub use self::transaction::{
    BEGIN_CLAIM, BEGIN_READ, CONFIRM, ClaimNumber, SERVER_TRAITS, ServerTraits, TRANSACTION, claim_settings,
};
