//! Who a server runs as: PostgreSQL, `PgBouncer` and MariaDB refuse to be root.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

const NAME: &str = "postgres";

/// The account that servers run as when we are root; `None` when we are not, and they run as ourselves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

/// The account to run servers as, looked up (and, as root, made if need be) once per process.
pub(super) fn account() -> Result<Option<Account>> {
    static ACCOUNT: OnceLock<std::result::Result<Option<Account>, String>> = OnceLock::new();
    ACCOUNT
        .get_or_init(|| find().map_err(|error| format!("{error:#}")))
        .clone()
        .map_err(|error| anyhow::anyhow!(error))
}

/// A command that runs as the server's account.
pub(super) fn command(program: impl AsRef<OsStr>) -> Result<Command> {
    let mut command = Command::new(program);
    if let Some(account) = account()? {
        // Also drops root's supplementary groups.
        command.uid(account.uid).gid(account.gid);
    }
    Ok(command)
}

/// Gives a file or folder to the server's account.
pub(super) fn hand_over(path: &Path) -> Result<()> {
    if let Some(account) = account()? {
        std::os::unix::fs::chown(path, Some(account.uid), Some(account.gid))
            .with_context(|| format!("cannot give {} to the user {NAME}", path.display()))?;
    }
    Ok(())
}

fn find() -> Result<Option<Account>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    if let Some(account) = lookup()? {
        return Ok(Some(account));
    }
    eprintln!("xtask: making the system user `{NAME}`, since a database server does not run as root");
    let made = Command::new("useradd")
        .args(["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", NAME])
        .status()
        .context("cannot run useradd")?;
    match lookup()? {
        Some(account) => Ok(Some(account)),
        None => bail!("a server needs a user that is not root: `useradd --system {NAME}` ended with {made}"),
    }
}

fn lookup() -> Result<Option<Account>> {
    let (Some(uid), Some(gid)) = (id("-u")?, id("-g")?) else { return Ok(None) };
    Ok(Some(Account { uid, gid }))
}

fn id(which: &str) -> Result<Option<u32>> {
    let output =
        Command::new("id").args([which, NAME]).stderr(Stdio::null()).output().context("cannot run `id`")?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map(Some).with_context(|| format!("`id {which} {NAME}` answered {text:?}"))
}
