//! PostgreSQL: its statements, what a claim and a probe make of the answers, what its errors mean, and what a table
//! and its server must be like.

mod append;
pub mod check;
pub mod claim;
pub mod encoding;
pub mod error;
pub mod lock_key;
pub mod probe;
#[cfg(test)]
mod qualified;
pub mod schema;
mod statements;
mod time;
mod transaction;
pub mod wake;
pub mod watermark;

pub use self::append::{AppendArrays, PayloadArray};
pub use self::statements::{PostgresStatements, WatermarkStatements};
pub use self::time::{TIME_OIDS, micros_since_1970};
pub use self::transaction::{
    BEGIN_CLAIM, BEGIN_READ, CONFIRM, ClaimNumber, Durability, KnownTraits, SERVER_TRAITS, ServerTraits,
    TRANSACTION, claim_settings,
};
