//! A data directory, copied from one that is made once per process: `initdb` is slow.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use super::{Folder, SUPERUSER, account, control};

/// Makes a new data directory at `data`, with a superuser without a password and UTF-8.
pub(super) fn create(programs: &Path, data: &Path) -> Result<()> {
    static TEMPLATE: OnceLock<std::result::Result<Folder, String>> = OnceLock::new();
    // The template is never dropped, being a static: its watchdog removes it when this process is gone.
    let template = TEMPLATE
        .get_or_init(|| template(programs).map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let copied = account::command("cp")?
        .args(["-R", "-p"])
        .arg(template.path().join("data"))
        .arg(data)
        .current_dir("/")
        .output()
        .context("cannot run cp")?;
    ensure!(copied.status.success(), "cannot copy a cluster: {}", String::from_utf8_lossy(&copied.stderr));
    Ok(())
}

fn template(programs: &Path) -> Result<Folder> {
    let folder = Folder::new("cluster")?;
    let log = folder.path().join("initdb.log");
    let output = File::create(&log)?;
    let status = account::command(programs.join("initdb"))?
        .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"])
        .arg(format!("--username={SUPERUSER}"))
        .arg("--pgdata")
        .arg(folder.path().join("data"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .context("cannot run initdb")?;
    ensure!(status.success(), "initdb ended with {status}:\n{}", control::tail(&log));
    Ok(folder)
}
