//! The claim of an embedded database: a lock of the operating system per tenant, beside the database's file.
//!
//! The lock belongs to an open file, so it dies with its process, with no lease to wait for. It never touches
//! the database's own file, where SQLite keeps locks that closing any descriptor of the process would drop.

mod access;
pub(crate) mod identity;
mod network;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use outbox_core::text::{MAX_REASON, one_line};
use outbox_core::{StoreError, StoreOperation};

use crate::file_lock::identity::FileIdentity;
pub use crate::file_lock::network::network_file_system;
use crate::hash::fnv1a;

/// How often a lock file that vanished between opening and locking is made anew before giving up.
const ATTEMPTS: usize = 16;

/// The lock file of a tenant: `<database>-outbox-<16 hexadecimal digits>.lock`.
///
/// The digits are a hash of the table's name (in lower case, since SQLite's names have none) and the tenant,
/// the same for every process, build and version. Two tenants with the same hash take turns.
pub fn lock_path(database: &Path, table: &str, tenant: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-outbox-{:016x}.lock", hash(table, tenant)));
    PathBuf::from(name)
}

/// FNV-1a, 64 bits, over the table's name in lower case, a NUL, and the tenant.
fn hash(table: &str, tenant: &str) -> u64 {
    let table = table.bytes().map(|byte| byte.to_ascii_lowercase());
    fnv1a(table.chain(std::iter::once(0)).chain(tenant.bytes()))
}

/// Why a lock file does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileLockError {
    /// It cannot be made, opened or looked at.
    #[error("the lock file {} cannot be used: its directory must be writable", shown(path))]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file system has no locks.
    #[error("the lock file {} cannot be locked: its file system has no locks", shown(path))]
    NoLocks {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Somebody deleted or replaced it, so that another can hold the tenant too.
    #[error(
        "the lock file {} was deleted or replaced while it was held: leave lock files alone",
        shown(path)
    )]
    Replaced {
        /// Which file.
        path: PathBuf,
    },
}

/// A path, in the text of an error.
pub(crate) fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy(), MAX_REASON).into_owned()
}

impl FileLockError {
    /// The failure of an operation: a lock that was lost may be had again, and one that does not serve stays so.
    pub fn error(self, operation: StoreOperation) -> StoreError {
        let message = self.to_string();
        match self {
            Self::Replaced { .. } => StoreError::transient(operation, message),
            error => StoreError::permanent(operation, message).with_source(error),
        }
    }
}

/// A file locked exclusively. Dropping it unlocks at once, even while a child process still has a copy of the
/// descriptor; the file stays where it is, since deleting it would let two holders in.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Locks a file beside a database, made if it does not exist; `None` if another holds it. Never waits.
    ///
    /// Whoever may open the database may open the file: it gets the database's group and mode, as far as this
    /// process may give them.
    ///
    /// # Errors
    /// [`FileLockError`] if the file cannot be made or locked, or if it is deleted again and again meanwhile.
    pub fn try_lock(path: &Path, database: &Path) -> Result<Option<Self>, FileLockError> {
        for _ in 0..ATTEMPTS {
            let file = open(path, database)
                .map_err(|source| FileLockError::Unusable { path: path.to_owned(), source })?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => {
                    return Err(FileLockError::NoLocks { path: path.to_owned(), source });
                }
            }
            let lock = Self { file, path: path.to_owned() };
            match lock.verify() {
                Ok(()) => return Ok(Some(lock)),
                // Deleted after it was opened: whoever comes next locks another file.
                Err(FileLockError::Replaced { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FileLockError::Replaced { path: path.to_owned() })
    }

    /// Whether the locked file is still the one that others would lock.
    ///
    /// # Errors
    /// [`FileLockError::Replaced`] if it is not: this lock excludes nobody any more.
    pub fn verify(&self) -> Result<(), FileLockError> {
        let unusable = |source| FileLockError::Unusable { path: self.path.clone(), source };
        let held = FileIdentity::of(&self.file.metadata().map_err(unusable)?);
        let named = FileIdentity::at(&self.path).map_err(unusable)?;
        if named == Some(held) { Ok(()) } else { Err(FileLockError::Replaced { path: self.path.clone() }) }
    }

    /// Which file it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file would do as well, if no child process were being started at this moment.
        let _ = self.file.unlock();
    }
}

/// Opens the lock file to write, so that it is made; one that another user owns can be locked by reading it.
fn open(path: &Path, database: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let to_write = access::private(options.read(true).write(true).create(true).truncate(false));
    match to_write.open(path) {
        Ok(file) => {
            access::take_after(&file, path, database);
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path).map_err(|_| error),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
