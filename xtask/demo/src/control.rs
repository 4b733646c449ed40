//! How the demo tells the publishers, in their own processes, to be difficult: a file for each difficulty.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// The difficulties that are in force now.
#[derive(Debug, Clone)]
pub(super) struct Control {
    folder: PathBuf,
}

impl Control {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// Has the publishers refuse this order, or none.
    pub(super) fn refuse(&self, subject: Option<&str>) -> Result<()> {
        self.write("refuse", subject)
    }

    /// Has the publishers take their time with each of this tenant's messages, or with none.
    pub(super) fn slow_down(&self, tenant: Option<&str>) -> Result<()> {
        self.write("slow", tenant)
    }

    pub(super) fn is_refused(&self, subject: &str) -> bool {
        self.has("refuse", subject)
    }

    pub(super) fn is_slow(&self, tenant: &str) -> bool {
        self.has("slow", tenant)
    }

    fn write(&self, name: &str, value: Option<&str>) -> Result<()> {
        // In one step, so that no reader sees half of it.
        let new = self.folder.join(format!("{name}.new"));
        fs::write(&new, value.unwrap_or_default())?;
        Ok(fs::rename(new, self.folder.join(name))?)
    }

    fn has(&self, name: &str, value: &str) -> bool {
        fs::read_to_string(self.folder.join(name)).is_ok_and(|text| text == value)
    }
}
