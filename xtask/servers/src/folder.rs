//! A temporary folder that is gone when we are, however we go.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::account;
use super::watchdog::Watchdog;

/// A temporary folder that belongs to the servers' account. It is removed when this is dropped, or when this
/// process is gone.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _watchdog: Watchdog,
}

impl Folder {
    /// A new folder; `name` is part of its name.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(name: &str) -> Result<Self> {
        let made = tempfile::Builder::new()
            .prefix(&format!("outbox-{name}-"))
            .tempdir_in(place())
            .context("cannot make a temporary folder")?;
        account::hand_over(made.path())?;
        // The folder's own drop stays in force until the watchdog has taken over.
        let mut shell = account::command("/bin/sh")?;
        shell.current_dir("/");
        let watchdog = Watchdog::over_folder(shell, made.path())?;
        Ok(Self { path: made.keep(), _watchdog: watchdog })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The system's place for temporary folders; as root `/tmp`, since the servers' account has to get there.
/// A socket's path may have 107 bytes, so a deep place is not used either.
fn place() -> PathBuf {
    let usual = std::env::temp_dir();
    if rustix::process::geteuid().is_root() || usual.as_os_str().len() > 60 {
        PathBuf::from("/tmp")
    } else {
        usual
    }
}
