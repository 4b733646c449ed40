//! Data directories, each copied from one that is made once per process: making one is slow.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use super::unpacked::Unpacked;
use super::{Folder, SUPERUSER, account, control, newest};

/// What data directories of one kind are copied from. It is never dropped, being a static: its watchdog
/// removes it when this process is gone.
type Template = OnceLock<std::result::Result<Folder, String>>;

/// Makes a new data directory of PostgreSQL at `data`, with a superuser without a password and UTF-8.
pub(super) fn postgres(programs: &Path, data: &Path) -> Result<()> {
    static TEMPLATE: Template = OnceLock::new();
    static NEWEST: Template = OnceLock::new();
    let is_newest = newest::find().is_some_and(|newest| newest == programs);
    copy(if is_newest { &NEWEST } else { &TEMPLATE }, data, |template| {
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
            // A server that starts removes what it takes for leftovers there: another's temporary tables.
            .arg(format!("--tmpdir={}", template.with_file_name("").display()))
            .arg(format!("--datadir={}", template.display()));
        Ok(command)
    })
}

/// Makes a new data directory of MySQL at `data`, where `root` has no password over TCP either.
pub(super) fn mysql(programs: &Unpacked, data: &Path) -> Result<()> {
    static TEMPLATE: Template = OnceLock::new();
    copy(&TEMPLATE, data, |template| {
        let statements = template.with_file_name("root.sql");
        fs::write(
            &statements,
            "CREATE USER 'root'@'127.0.0.1' IDENTIFIED BY '';\n\
             GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n",
        )?;
        account::hand_over(&statements)?;
        let mut command = programs.command("usr/sbin/mysqld")?;
        command
            .args(["--no-defaults", "--initialize-insecure", "--secure-file-priv=NULL"])
            .args(["--innodb-redo-log-capacity=32M", "--innodb-flush-method=nosync"])
            .arg(format!("--basedir={}", programs.path("usr").display()))
            .arg(format!("--lc-messages-dir={}", programs.path("usr/share/mysql").display()))
            .arg(format!("--init-file={}", statements.display()))
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
