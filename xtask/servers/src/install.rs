//! The programs that the servers are made of: found, or installed after saying so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::unpacked::Unpacked;

/// Debian's package of MySQL's server.
pub(super) const MYSQL: &str = "mysql-server-core";

/// A program that is not part of the Rust toolchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// PostgreSQL's server programs, with `psql`.
    Postgres,
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

    /// Looks for it, and installs it with `apt-get` if it is missing, after saying so. That needs root and
    /// Debian (or what descends from it).
    ///
    /// # Errors
    /// If it is missing and cannot be installed here; the error has the command to type.
    pub fn ensure(self) -> Result<()> {
        if self.find().is_some() {
            return Ok(());
        }
        let root = rustix::process::geteuid().is_root();
        if !(root && Path::new("/etc/debian_version").exists() && on_path("apt-get").is_some()) {
            bail!("{self:?} is not installed; type: {}", self.advice());
        }
        if self == Self::MySql {
            eprintln!("xtask: fetching MySQL from Debian unstable, once (65 MB)");
            return Unpacked::fetch(MYSQL).map(drop).context("MySQL cannot be fetched");
        }
        eprintln!("xtask: {self:?} is not installed; installing it with apt-get");
        apt_get(&["update"])?;
        let _services = NoServices::new()?;
        match self {
            Self::Postgres => {
                apt_get(&["install", "postgresql-common"])?;
                let _cluster = NoMainCluster::new()?;
                apt_get(&["install", "postgresql"])?;
            }
            Self::PgBouncer => apt_get(&["install", "pgbouncer"])?,
            // The programs without the service and its data; before Debian 12 they had other names.
            Self::MariaDb => apt_get(&["install", "mariadb-server-core", "mariadb-client-core"])
                .or_else(|_| apt_get(&["install", "mariadb-server"]))?,
            Self::MySql => {}
        }
        ensure!(self.find().is_some(), "apt-get installed {self:?}, but its programs cannot be found");
        Ok(())
    }

    fn advice(self) -> &'static str {
        match (self, cfg!(target_os = "macos")) {
            (Self::MySql, _) => {
                "OUTBOX_TEST_MYSQL_URL=mysql://root@… cargo xtask test, with a server of yours"
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
            Self::PgBouncer => {
                on_path("pgbouncer").or_else(|| in_folder(Path::new("/usr/sbin"), "pgbouncer"))
            }
            Self::MySql => Unpacked::find(MYSQL).map(|unpacked| unpacked.path("usr/sbin")),
            Self::MariaDb => on_path("mariadb-install-db")
                .filter(|folder| mariadbd(folder).is_some() && in_folder(folder, "mariadb").is_some()),
        }
    }
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

fn apt_get(arguments: &[&str]) -> Result<()> {
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
