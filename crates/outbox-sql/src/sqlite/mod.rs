//! What claiming from a SQLite database needs beside its statements: where the database lives, what holds a
//! tenant there, whether it takes writes, and what its errors mean.
//!
//! Every relay of a process comes here, whichever driver it has: what is in memory is held in one table.

pub mod file;
pub mod hold;
pub mod meaning;
pub mod opened;
pub mod pauses;
pub mod place;
pub mod writable;

pub use self::file::DatabaseFile;
pub use self::hold::Hold;
pub use self::opened::OpenedAs;
pub use self::pauses::Pauses;
pub use self::place::{MemoryDatabase, NoPlace, Place};
pub use self::writable::Writable;
