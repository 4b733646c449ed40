//! The servers that tests make their databases on: private ones, or those that variables name.

use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};
use servers::install;
use servers::{MariaDb, MySql, Postgres};

use crate::programs::Program;

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Postgres,
    NewestPostgres,
    MariaDb,
    MySql,
}

/// A private server that runs.
trait Private: Send + Sync {
    fn url(&self) -> String;
    fn version(&self) -> Result<String>;
    fn log_tail(&self) -> String;
}

impl Private for Postgres {
    fn url(&self) -> String {
        self.url("postgres")
    }

    fn version(&self) -> Result<String> {
        self.version()
    }

    fn log_tail(&self) -> String {
        self.log_tail()
    }
}

impl Private for MariaDb {
    fn url(&self) -> String {
        self.url("mysql")
    }

    fn version(&self) -> Result<String> {
        self.execute("mysql", "SELECT @@version")
    }

    fn log_tail(&self) -> String {
        self.log_tail()
    }
}

impl Private for MySql {
    fn url(&self) -> String {
        self.url("mysql")
    }

    fn version(&self) -> Result<String> {
        Ok(self.version().to_owned())
    }

    fn log_tail(&self) -> String {
        self.log_tail()
    }
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Postgres | Self::NewestPostgres => "PostgreSQL",
            Self::MariaDb => "MariaDB",
            Self::MySql => "MySQL",
        }
    }

    /// The variable with the address that tests connect to, as a superuser.
    fn variable(self) -> &'static str {
        match self {
            Self::Postgres | Self::NewestPostgres => "OUTBOX_TEST_POSTGRES_URL",
            Self::MariaDb | Self::MySql => "OUTBOX_TEST_MYSQL_URL",
        }
    }

    /// Whether the variable names one.
    pub(super) fn is_given(self) -> bool {
        std::env::var(self.variable()).is_ok_and(|url| !url.is_empty())
    }

    /// Whether a test binary runs again on such a server: those of one crate, which shares the statements with the
    /// other.
    pub(super) fn is_tested_again_by(self, binary: &Program) -> bool {
        let prefix = match self {
            Self::NewestPostgres => "postgres",
            Self::MySql => "mysql",
            Self::Postgres | Self::MariaDb => return false,
        };
        binary.package() == "outbox-sqlx" && binary.name.starts_with(prefix)
    }

    fn start(self) -> Result<Box<dyn Private>> {
        // For every test binary at once.
        let settings = [("max_connections", "1000")];
        Ok(match self {
            Self::Postgres => Box::new(Postgres::start(&settings)?),
            Self::NewestPostgres => Box::new(Postgres::start_newest(&settings)?),
            Self::MariaDb => Box::new(MariaDb::start(&settings)?),
            Self::MySql => Box::new(MySql::start(&settings)?),
        })
    }

    fn program(self) -> install::Program {
        match self {
            Self::Postgres => install::Program::Postgres,
            Self::NewestPostgres => install::Program::NewestPostgres,
            Self::MariaDb => install::Program::MariaDb,
            Self::MySql => install::Program::MySql,
        }
    }
}

/// One that all tests of a run share.
pub(super) struct Shared {
    kind: Kind,
    /// `None` if the variable names another.
    server: Option<Box<dyn Private>>,
}

impl Shared {
    /// Starts a server, if none is given, and installs or fetches it before if need be.
    pub(super) fn start(kind: Kind) -> Result<Self> {
        if kind.is_given() {
            eprintln!("xtask: using the server of {}", kind.variable());
            return Ok(Self { kind, server: None });
        }
        kind.program().ensure()?;
        let server = kind.start()?;
        eprintln!("xtask: a private {} {} server: {}", kind.name(), server.version()?, server.url());
        Ok(Self { kind, server: Some(server) })
    }

    /// What it is called, with its version.
    pub(super) fn name(&self) -> Result<String> {
        let version = self.server.as_ref().map_or(Ok(String::new()), |server| server.version())?;
        Ok(format!("{} {version}", self.kind.name()))
    }

    /// Tells tests of it.
    pub(super) fn tell(&self, tests: &mut Command) {
        if let Some(server) = &self.server {
            tests.env(self.kind.variable(), server.url());
        }
    }

    /// Prints the end of its log, if it is ours.
    pub(super) fn show_log(&self) {
        if let Some(server) = &self.server {
            eprintln!("xtask: the end of the {} server's log:\n{}", self.kind.name(), server.log_tail());
        }
    }
}

/// Servers that tests share, on their way while something else is done.
pub(super) struct Servers {
    starting: Mutex<Vec<JoinHandle<Result<Shared>>>>,
    ready: OnceLock<Result<Vec<Shared>, String>>,
}

impl Servers {
    /// Starts one of each kind, all at once.
    pub(super) fn start(kinds: &[Kind]) -> Self {
        let starting = kinds.iter().copied().map(|kind| thread::spawn(move || Shared::start(kind)));
        Self { starting: Mutex::new(starting.collect()), ready: OnceLock::new() }
    }

    /// Waits until they are there.
    pub(super) fn ready(&self) -> Result<&[Shared]> {
        let ready = self.ready.get_or_init(|| {
            let starting = std::mem::take(&mut *self.starting.lock().unwrap_or_else(PoisonError::into_inner));
            let servers = starting.into_iter().map(|server| match server.join() {
                Ok(server) => server.map_err(|error| format!("{error:#}")),
                Err(_) => Err("what starts a server panicked".to_owned()),
            });
            servers.collect()
        });
        ready.as_deref().map_err(|error| anyhow!("{error}"))
    }

    /// Prints the ends of the logs of those that are ours.
    pub(super) fn show_logs(&self) {
        for server in self.ready().into_iter().flatten() {
            server.show_log();
        }
    }
}

impl Drop for Servers {
    /// Servers that are on their way are waited for, so that they are stopped.
    fn drop(&mut self) {
        let _ = self.ready();
    }
}
