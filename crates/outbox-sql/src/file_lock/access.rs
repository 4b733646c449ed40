//! Who may lock: whoever may open the lock file, to read or to write. So it takes after the database beside it.

use std::fs::{File, OpenOptions};
use std::path::Path;

#[cfg(unix)]
use super::identity::FileIdentity;

/// Makes the file for nobody else, before it is known who else may have it.
#[cfg(unix)]
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Whether an open file is nothing but a lock file of this name: no link led to something else that a privileged
/// process would give away.
#[cfg(unix)]
fn is_our_own(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let (Ok(open), Ok(named)) = (file.metadata(), std::fs::symlink_metadata(path)) else { return false };
    open.is_file()
        && open.len() == 0
        && open.nlink() == 1
        && FileIdentity::of(&open) == FileIdentity::of(&named)
}

/// Gives a lock file the group and the mode of its database, as far as the process may; a privileged one gives it
/// the owner, too, as it does for the files that SQLite makes. What it may not is no failure: this process has the
/// file open. It never widens the mode for that: whom this locks out gets an error that names the file, and a
/// stranger who may lock can hold a tenant.
#[cfg(unix)]
pub(super) fn take_after(file: &File, path: &Path, database: &Path) {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    if !is_our_own(file, path) {
        return;
    }
    let (Ok(wanted), Ok(found)) = (std::fs::metadata(database), file.metadata()) else { return };
    let owned = (found.uid(), found.gid()) == (wanted.uid(), wanted.gid());
    if !owned && fchown(file, Some(wanted.uid()), Some(wanted.gid())).is_err() && found.gid() != wanted.gid()
    {
        let _ = fchown(file, None, Some(wanted.gid()));
    }
    let mode = mode(wanted.mode());
    if found.mode() & 0o777 != mode {
        let _ = file.set_permissions(Permissions::from_mode(mode));
    }
}

#[cfg(not(unix))]
pub(super) fn take_after(_: &File, _: &Path, _: &Path) {}

/// The mode of a lock file beside a database of this mode: who may read or write the one may do so with the other.
#[cfg(unix)]
fn mode(database: u32) -> u32 {
    database & 0o666
}

#[cfg(all(test, unix))]
mod tests {
    use super::mode;

    #[test]
    fn a_lock_file_is_for_whom_its_database_is_for() {
        for (database, lock) in [
            (0o100_600, 0o600),
            (0o100_660, 0o660),
            (0o100_640, 0o640),
            (0o100_644, 0o644),
            (0o100_606, 0o606),
            (0o106_775, 0o664),
        ] {
            assert_eq!(mode(database), lock, "{database:o}");
        }
    }
}
