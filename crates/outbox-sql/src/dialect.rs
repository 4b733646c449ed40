//! What differs between the databases: each one's statements and limits in a file of its own.

use std::fmt;

/// A database that the SQL stores know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// MySQL and MariaDB.
    MySql,
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// The longest name that the database keeps whole: in bytes, on MySQL in characters; `None` if it keeps any.
    pub const fn max_identifier_length(self) -> Option<usize> {
        match self {
            Self::MySql => Some(64),
            Self::Postgres => Some(63),
            Self::Sqlite => None,
        }
    }

    pub(crate) const fn quote_mark(self) -> char {
        match self {
            Self::MySql => '`',
            Self::Postgres | Self::Sqlite => '"',
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MySql => "MySQL",
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
        })
    }
}
