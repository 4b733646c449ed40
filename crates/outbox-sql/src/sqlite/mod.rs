//! SQLite: its statements, where a database lives, what holds a tenant there, whether it takes writes, what its errors
//! mean, and what a table must be like.
//!
//! Every relay of a process comes here, whichever driver it has: what is in memory is held in one table.

pub mod check;
pub mod file;
pub mod hold;
pub mod meaning;
pub mod opened;
pub mod pauses;
pub mod place;
pub mod schema;
mod statements;
pub mod writable;

pub use self::file::DatabaseFile;
pub use self::hold::Hold;
pub use self::opened::OpenedAs;
pub use self::pauses::Pauses;
pub use self::place::{MemoryDatabase, NoPlace, Place};
pub use self::statements::{ROWS_PER_INSERT, SqliteStatements, append, json_rows, json_tenants, json_texts};
pub use self::writable::Writable;
