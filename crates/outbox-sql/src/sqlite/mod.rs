//! SQLite: its statements, where a database lives, what holds a tenant there, whether it takes writes, what its errors
//! mean, and what a table must be like.
//!
//! Every relay of a process comes here, whichever driver it has: what is in memory is held in one table.

#[doc(hidden)]
pub mod check;
mod claim;
#[doc(hidden)]
pub mod driver;
pub mod file;
#[doc(hidden)]
pub mod hold;
#[doc(hidden)]
pub mod meaning;
#[doc(hidden)]
pub mod opened;
#[doc(hidden)]
pub mod pauses;
#[doc(hidden)]
pub mod place;
mod probe;
pub mod schema;
mod statements;
mod store;
mod writable;

pub use self::file::DatabaseFile;
pub use self::hold::Hold;
pub use self::opened::OpenedAs;
pub use self::pauses::Pauses;
pub use self::place::{MemoryDatabase, NoPlace, Place};
pub use self::statements::{ROWS_PER_INSERT, SqliteStatements, append, json_rows, json_tenants};
#[doc(hidden)]
pub use self::store::SqliteStore;
use self::writable::Writable;
