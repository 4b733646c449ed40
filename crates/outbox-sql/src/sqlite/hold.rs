//! What holds a tenant: a lock file beside the database, or an entry of this process for one in memory.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use outbox_core::{StoreError, StoreOperation, TenantId};

use super::file::{DatabaseFile, DatabaseFileError};
use super::place::{MemoryDatabase, Place};
use crate::file_lock::{FileLock, FileLockError, lock_path};

/// A tenant held. Dropping it frees the tenant at once.
#[derive(Debug)]
pub enum Hold {
    /// Of a database in a file.
    File {
        /// What excludes others.
        lock: FileLock,
        /// The file that it is beside.
        database: DatabaseFile,
    },
    /// Of one in memory.
    Memory(MemoryHold),
}

/// Why a tenant is not held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// The lock file does not serve.
    #[error(transparent)]
    Lock(#[from] FileLockError),
    /// The lock is beside another database by now.
    #[error(transparent)]
    Database(#[from] DatabaseFileError),
}

impl HoldError {
    /// The failure of an operation.
    pub fn error(self, operation: StoreOperation) -> StoreError {
        match self {
            Self::Lock(error) => error.error(operation),
            Self::Database(error) => error.error(operation),
        }
    }
}

impl Hold {
    /// Takes a tenant of a table; `None` if another holds it. Never waits.
    ///
    /// # Errors
    /// [`FileLockError`], if the lock file beside the database does not serve.
    pub fn take(place: &Place, table: &str, tenant: &TenantId) -> Result<Option<Self>, FileLockError> {
        match place {
            Place::File(database) => {
                let path = lock_path(database.path(), table, tenant.as_str());
                let lock = FileLock::try_lock(&path, database.path())?;
                Ok(lock.map(|lock| Self::File { lock, database: database.clone() }))
            }
            Place::Memory(database) => Ok(MemoryHold::take(database, table, tenant).map(Self::Memory)),
        }
    }

    /// Whether it still excludes every other from the database that connections have open.
    ///
    /// # Errors
    /// [`HoldError`], if it does not: somebody deleted or replaced the lock file, or the database.
    pub fn verify(&self) -> Result<(), HoldError> {
        match self {
            Self::File { lock, database } => {
                database.verify()?;
                Ok(lock.verify()?)
            }
            // Nobody but its owner can take the entry out.
            Self::Memory(_) => Ok(()),
        }
    }

    /// Frees the tenant once `wait` is over, in a thread that does the waiting, since the runtime may be what
    /// ends. For whoever gives up a statement that may still be marking: a tenant freed earlier could be
    /// claimed, and its rows marked behind the new holder's back.
    ///
    /// If the operating system has no thread for it, nobody can wait, and the tenant is freed at once.
    pub fn free_after(self, wait: impl FnOnce() + Send + 'static) {
        let wait = move || {
            wait();
            drop(self);
        };
        // Not spawned, the closure is dropped here, with all that was moved into it.
        let _ = thread::Builder::new().name("outbox-sqlite-mark".to_owned()).spawn(wait);
    }
}

/// Takes a lock file beside a database, as a claim does, and frees it; answers why that is refused.
pub fn try_lock_file(database: &Path) -> Option<String> {
    let mut probe = database.as_os_str().to_owned();
    probe.push("-outbox-check.lock");
    FileLock::try_lock(Path::new(&probe), database).err().map(|error| error.to_string())
}

type Key = (MemoryDatabase, String, TenantId);

static HELD: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<Key>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tenant of a database in memory, which no other process can see.
#[derive(Debug)]
pub struct MemoryHold(Key);

impl MemoryHold {
    fn take(database: &MemoryDatabase, table: &str, tenant: &TenantId) -> Option<Self> {
        let key = (database.clone(), table.to_ascii_lowercase(), tenant.clone());
        // Not a `MemoryHold` before it is known to be ours: dropping one takes the entry out.
        let taken = held().insert(key.clone());
        if taken { Some(Self(key)) } else { None }
    }
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        held().remove(&self.0);
    }
}
