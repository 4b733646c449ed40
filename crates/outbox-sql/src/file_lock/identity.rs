//! Telling whether a path still names the file that is open.

use std::fs::Metadata;

/// What makes a file the same file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    /// Elsewhere the standard library has no number for it; a file made anew has a new time of its making.
    #[cfg(not(unix))]
    created: Option<std::time::SystemTime>,
}

impl FileIdentity {
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device_and_inode: (metadata.dev(), metadata.ino()) }
    }

    #[cfg(not(unix))]
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { created: metadata.created().ok() }
    }
}
