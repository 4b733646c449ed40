//! Data directories, each copied from one that is made once per process: making one is slow.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use super::{Folder, SUPERUSER, account, control};

/// What data directories of one kind are copied from. It is never dropped, being a static: its watchdog
/// removes it when this process is gone.
type Template = OnceLock<std::result::Result<Folder, String>>;

/// Makes a new data directory of PostgreSQL at `data`, with a superuser without a password and UTF-8.
pub(super) fn postgres(programs: &Path, data: &Path) -> Result<()> {
    static TEMPLATE: Template = OnceLock::new();
    copy(&TEMPLATE, data, |template| {
        let mut command = account::command(programs.join("initdb"))?;
        command
            .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"])
            .arg(format!("--username={SUPERUSER}"))
            .arg("--pgdata")
            .arg(template);
        Ok(command)
    })
}

/// Makes a new data directory of MariaDB at `data`, where `root` has no password.
pub(super) fn mariadb(programs: &Path, data: &Path) -> Result<()> {
    static TEMPLATE: Template = OnceLock::new();
    copy(&TEMPLATE, data, |template| {
        let mut command = account::command(programs.join("mariadb-install-db"))?;
        command
            .args(["--no-defaults", "--auth-root-authentication-method=normal"])
            .args(["--skip-test-db", "--skip-name-resolve"])
            // Small, since it is copied for each server; and without waiting for the disk.
            .args(["--innodb-log-file-size=16M", "--innodb-flush-method=nosync"])
            .arg(format!("--datadir={}", template.display()));
        Ok(command)
    })
}

fn copy(
    template: &'static Template,
    data: &Path,
    maker: impl FnOnce(&Path) -> Result<Command>,
) -> Result<()> {
    let template = template
        .get_or_init(|| make(maker).map_err(|error| format!("{error:#}")))
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

fn make(maker: impl FnOnce(&Path) -> Result<Command>) -> Result<Folder> {
    let folder = Folder::new("cluster")?;
    let log = folder.path().join("made.log");
    let output = File::create(&log)?;
    let mut command = maker(&folder.path().join("data"))?;
    let program = command.get_program().display().to_string();
    let status = command
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    ensure!(status.success(), "{program} ended with {status}:\n{}", control::tail(&log));
    Ok(folder)
}
