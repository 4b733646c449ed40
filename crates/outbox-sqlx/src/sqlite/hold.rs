//! What holds a tenant: a lock file beside the database, or an entry of this process for one in memory.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outbox_core::TenantId;
use outbox_sql::file_lock::{FileLock, FileLockError, lock_path};

use super::place::{MemoryDatabase, Place};

/// A tenant held. Dropping it frees the tenant at once.
#[derive(Debug)]
pub(super) enum Hold {
    File(FileLock),
    Memory(#[expect(dead_code, reason = "held for what its drop does")] MemoryHold),
}

impl Hold {
    /// Takes a tenant of a table; `None` if another holds it. Never waits.
    pub(super) fn take(place: &Place, table: &str, tenant: &TenantId) -> Result<Option<Self>, FileLockError> {
        match place {
            Place::File(database) => {
                let lock = FileLock::try_lock(&lock_path(database, table, tenant.as_str()))?;
                Ok(lock.map(Self::File))
            }
            Place::Memory(database) => Ok(MemoryHold::take(database, table, tenant).map(Self::Memory)),
        }
    }

    /// Whether it still excludes every other.
    pub(super) fn verify(&self) -> Result<(), FileLockError> {
        match self {
            Self::File(lock) => lock.verify(),
            // Nobody but its owner can take the entry out.
            Self::Memory(_) => Ok(()),
        }
    }
}

type Key = (MemoryDatabase, String, TenantId);

static HELD: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<Key>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tenant of a database in memory, which no other process can see.
#[derive(Debug)]
pub(super) struct MemoryHold(Key);

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
