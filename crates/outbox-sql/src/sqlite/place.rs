//! Where a database lives, which decides what can hold its tenants.

use std::path::PathBuf;

use outbox_core::text::{MAX_NAME, one_line};
use outbox_core::{StoreError, StoreOperation};

use super::file::{DatabaseFile, DatabaseFileError};
use super::opened::OpenedAs;
use crate::file_lock::{network_file_system, shown};

/// Asks for the file of a schema. Parameter: the schema. There is no row if it is not attached, and no name,
/// or an empty one, if it is in memory.
pub const FIND_FILE: &str = "SELECT file FROM main.pragma_database_list WHERE name = ?1 COLLATE NOCASE";

/// Where a database lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file, by the absolute path that SQLite itself tells, so that every process agrees.
    File(DatabaseFile),
    /// In the memory of this process.
    Memory(MemoryDatabase),
}

/// What tells one database in memory from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryDatabase {
    /// Shared by name between the connections of this process, whatever their driver.
    Shared {
        /// `memdb`, or empty for a shared cache.
        vfs: &'static str,
        /// Its name.
        name: String,
    },
    /// That of one connection, and so of the pool that has this connection only.
    Private {
        /// The address of something that all clones of the pool, and no other, have while they live.
        pool: usize,
        /// The schema, in lower case.
        schema: String,
    },
}

/// Why a database cannot be claimed from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoPlace {
    /// The schema is not that of an attached database.
    #[error(
        "no database is attached as \"{}\": attach it on every connection of the pool",
        one_line(schema, MAX_NAME)
    )]
    NotAttached {
        /// The schema.
        schema: String,
    },
    /// Each connection sees another database.
    #[error(
        "every connection of this pool has an in-memory database of its own: use a pool of exactly one \
         connection (max_connections(1), max_size(1)), a database that connections share by its name \
         (`sqlite::memory:` in sqlx, `file:NAME?mode=memory&cache=shared` in Diesel), or a file"
    )]
    PrivateMemory,
    /// Locks there are not to be relied on.
    #[error(
        "the database {} is on a network file system ({file_system}), where locks cannot be relied on: move it to a local disk",
        shown(path)
    )]
    Network {
        /// The database's file.
        path: PathBuf,
        /// What the operating system calls it.
        file_system: String,
    },
    /// The operating system has no such file.
    #[error(
        "the database's file {} does not exist on this machine's file system: use the default VFS or `memdb`",
        shown(path)
    )]
    NoFile {
        /// What SQLite calls it.
        path: PathBuf,
    },
    /// The file is not the one that connections have open.
    #[error(transparent)]
    File(#[from] DatabaseFileError),
}

impl NoPlace {
    /// The failure of an operation.
    pub fn error(self, operation: StoreOperation) -> StoreError {
        match self {
            Self::File(error) => error.error(operation),
            error => StoreError::permanent(operation, error.to_string()),
        }
    }
}

impl Place {
    /// Where a schema lives, by SQLite's answer to [`FIND_FILE`] and the name that connections open. `pool` is
    /// the [address](MemoryDatabase::Private::pool) of a pool of exactly one connection, which may be private.
    ///
    /// # Errors
    /// [`NoPlace`], if it cannot be claimed from there.
    pub fn of(
        schema: &str,
        file: Option<Option<String>>,
        opened: &OpenedAs,
        pool: Option<usize>,
    ) -> Result<Self, NoPlace> {
        let Some(file) = file else { return Err(NoPlace::NotAttached { schema: schema.to_owned() }) };
        let main = schema.eq_ignore_ascii_case("main");
        match file.filter(|file| !file.is_empty()) {
            Some(path) if !(main && opened.is_memdb()) => {
                let (name, cache) = (main.then(|| opened.file()).flatten(), opened.may_share_cache());
                Self::file(PathBuf::from(path), name, cache)
            }
            _ if main => match opened.shared_memory() {
                Some(database) => Ok(Self::Memory(database)),
                None => Self::private(schema, pool),
            },
            _ => Self::private(schema, pool),
        }
    }

    /// Whether it is still where it was.
    ///
    /// # Errors
    /// [`DatabaseFileError`], if another file has its name: what was read or written may have been in that.
    pub fn verify(&self) -> Result<(), DatabaseFileError> {
        match self {
            Self::File(file) => file.verify(),
            // It goes with this process.
            Self::Memory(_) => Ok(()),
        }
    }

    /// Whether what is published could be marked, as far as the operating system tells.
    ///
    /// # Errors
    /// [`DatabaseFileError`], if the file, or its directory, takes no writes.
    pub fn verify_writable(&self) -> Result<(), DatabaseFileError> {
        match self {
            Self::File(file) => file.verify_writable(),
            Self::Memory(_) => Ok(()),
        }
    }

    /// Whether a connection may be set to read what others have not committed (`read_uncommitted`, which counts where
    /// connections share their cache): then each has to be asked.
    pub fn may_read_uncommitted(&self) -> bool {
        match self {
            Self::File(file) => file.may_share_cache,
            Self::Memory(MemoryDatabase::Shared { vfs, .. }) => vfs.is_empty(),
            Self::Memory(MemoryDatabase::Private { .. }) => false,
        }
    }

    fn file(path: PathBuf, opened: Option<PathBuf>, may_share_cache: bool) -> Result<Self, NoPlace> {
        if !path.is_file() {
            return Err(NoPlace::NoFile { path });
        }
        match network_file_system(&path) {
            Some(file_system) => Err(NoPlace::Network { path, file_system }),
            None => Ok(Self::File(DatabaseFile::of(path, opened, may_share_cache)?)),
        }
    }

    fn private(schema: &str, pool: Option<usize>) -> Result<Self, NoPlace> {
        let pool = pool.ok_or(NoPlace::PrivateMemory)?;
        Ok(Self::Memory(MemoryDatabase::Private { pool, schema: schema.to_ascii_lowercase() }))
    }
}
