//! The file of a database: connections that are open have a file, new ones open a name, and a lock is beside a name.
//! They are one database as long as the name leads to the file that it led to.

use std::io;
use std::path::{Path, PathBuf};

use outbox_core::{StoreError, StoreOperation};

use crate::file_lock::identity::FileIdentity;
use crate::file_lock::shown;

/// The file of a database, as it was when a store came to it first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFile {
    /// As SQLite names it: absolute, without links.
    path: PathBuf,
    /// As connections open it, if that is known: through a link, or from the process's directory.
    opened: Option<PathBuf>,
    identity: FileIdentity,
    /// Whether its connections may share their cache.
    pub(super) may_share_cache: bool,
}

/// Why a database's file cannot be worked with any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseFileError {
    /// Its name leads to another file, or to none.
    #[error(
        "{} is not the file that connections of this process have open: it was replaced, moved or deleted. Nothing is \
         published before you reopen the pool and make the store anew",
        shown(path)
    )]
    Replaced {
        /// The name.
        path: PathBuf,
    },
    /// Nothing can be written there: the file, or the directory for its journal and for lock files.
    #[error(
        "{} takes no writes any more ({source}), so that nothing could be marked: nothing is published before it does",
        shown(path)
    )]
    ReadOnly {
        /// The file or its directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The operating system does not tell.
    #[error("whether {} is still the same file cannot be found out", shown(path))]
    Unseen {
        /// The name.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl DatabaseFileError {
    /// The failure of an operation.
    pub fn error(self, operation: StoreOperation) -> StoreError {
        let message = self.to_string();
        match self {
            Self::Replaced { .. } => StoreError::permanent(operation, message),
            error @ Self::ReadOnly { .. } => StoreError::permanent(operation, message).with_source(error),
            error => StoreError::transient(operation, message).with_source(error),
        }
    }
}

impl DatabaseFile {
    /// The file that a connection has open, by SQLite's name for it and by the name that connections open.
    ///
    /// # Errors
    /// [`DatabaseFileError`], if the process has another file open by that name.
    pub fn of(
        path: PathBuf,
        opened: Option<PathBuf>,
        may_share_cache: bool,
    ) -> Result<Self, DatabaseFileError> {
        let Some(identity) = look_at(&path)? else { return Err(DatabaseFileError::Replaced { path }) };
        let opened = match opened {
            // A name that leads nowhere is one that SQLite reads in another way than we do.
            Some(opened)
                if opened != path && FileIdentity::at(&opened).is_ok_and(|found| found.is_some()) =>
            {
                Some(opened)
            }
            _ => None,
        };
        let file = Self { path, opened, identity, may_share_cache };
        file.verify()?;
        if open_files::tell(&file.path, identity) == Some(false) {
            return Err(DatabaseFileError::Replaced { path: file.path });
        }
        Ok(file)
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its names still lead to it.
    ///
    /// # Errors
    /// [`DatabaseFileError`], if one does not: what was read or written may have been in another file.
    pub fn verify(&self) -> Result<(), DatabaseFileError> {
        for path in [Some(&self.path), self.opened.as_ref()].into_iter().flatten() {
            if look_at(path)? != Some(self.identity) {
                return Err(DatabaseFileError::Replaced { path: path.clone() });
            }
        }
        Ok(())
    }

    /// Whether this process may still write to it and beside it: an operating system makes a file system read-only after
    /// an error of its disk, and connections that are open do not say so before they write.
    ///
    /// # Errors
    /// [`DatabaseFileError`], if it may not.
    pub fn verify_writable(&self) -> Result<(), DatabaseFileError> {
        for path in std::iter::once(self.path()).chain(self.path.parent()) {
            may_write(path)
                .map_err(|source| DatabaseFileError::ReadOnly { path: path.to_owned(), source })?;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn may_write(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    // As the effective user, who is the one that writes.
    Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}

/// Elsewhere a mode says so, and nothing else is known.
#[cfg(not(unix))]
fn may_write(path: &Path) -> io::Result<()> {
    if path.metadata()?.permissions().readonly() && path.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

fn look_at(path: &Path) -> Result<Option<FileIdentity>, DatabaseFileError> {
    FileIdentity::at(path).map_err(|source| DatabaseFileError::Unseen { path: path.to_owned(), source })
}

/// What files the process has open: a pool may have opened its connections before somebody replaced the file. Another
/// pool's count, too: what is appended through them goes into a file that nobody finds.
#[cfg(target_os = "linux")]
mod open_files {
    use std::ffi::OsString;
    use std::fs::{metadata, read_dir, read_link};
    use std::io::ErrorKind::NotFound;
    use std::path::{Path, PathBuf};

    use crate::file_lock::identity::FileIdentity;

    /// Whether this file is open, and none that had its name and was deleted; `None` if that cannot be found out.
    pub(super) fn tell(path: &Path, identity: FileIdentity) -> Option<bool> {
        let mut deleted: OsString = path.as_os_str().to_owned();
        deleted.push(" (deleted)");
        let deleted = PathBuf::from(deleted);
        let mut is_open = false;
        for descriptor in read_dir("/proc/self/fd").ok()? {
            let descriptor = descriptor.ok()?.path();
            match metadata(&descriptor) {
                Ok(found) => is_open |= FileIdentity::of(&found) == identity,
                // Closed meanwhile.
                Err(error) if error.kind() == NotFound => continue,
                Err(_) => return None,
            }
            if read_link(&descriptor).is_ok_and(|name| name == deleted) {
                return Some(false);
            }
        }
        Some(is_open)
    }
}

#[cfg(not(target_os = "linux"))]
mod open_files {
    use std::path::Path;

    use crate::file_lock::identity::FileIdentity;

    /// Not known here.
    pub(super) fn tell(_: &Path, _: FileIdentity) -> Option<bool> {
        None
    }
}
