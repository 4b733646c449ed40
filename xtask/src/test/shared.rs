//! The servers that tests make their databases on: private ones, or those that variables name.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;
use servers::{MariaDb, MySql, Postgres};

use super::tally::Tally;
use crate::process;

/// A kind of private server.
pub(super) trait Private: Sized {
    /// What it is called.
    const NAME: &str;
    /// The variable with the address that tests connect to, as a superuser.
    const VARIABLE: &str;

    fn start() -> Result<Self>;
    fn address(&self) -> SocketAddr;
    fn url(&self) -> String;
    fn log_tail(&self) -> String;
}

impl Private for Postgres {
    const NAME: &str = "PostgreSQL";
    const VARIABLE: &str = "OUTBOX_TEST_POSTGRES_URL";

    fn start() -> Result<Self> {
        Self::start(&[("max_connections", "500")])
    }

    fn address(&self) -> SocketAddr {
        self.address()
    }

    fn url(&self) -> String {
        self.url("postgres")
    }

    fn log_tail(&self) -> String {
        self.log_tail()
    }
}

impl Private for MariaDb {
    const NAME: &str = "MariaDB";
    const VARIABLE: &str = "OUTBOX_TEST_MYSQL_URL";

    fn start() -> Result<Self> {
        Self::start(&[("max_connections", "500")])
    }

    fn address(&self) -> SocketAddr {
        self.address()
    }

    fn url(&self) -> String {
        self.url("mysql")
    }

    fn log_tail(&self) -> String {
        self.log_tail()
    }
}

impl Private for MySql {
    const NAME: &str = "MySQL";
    const VARIABLE: &str = MariaDb::VARIABLE;

    fn start() -> Result<Self> {
        Self::start(&[("max_connections", "500")])
    }

    fn address(&self) -> SocketAddr {
        self.address()
    }

    fn url(&self) -> String {
        self.url("mysql")
    }

    fn log_tail(&self) -> String {
        self.log_tail()
    }
}

/// One that all tests of a run share; `None` if the variable names another.
#[derive(Debug)]
pub(super) struct Shared<S>(Option<S>);

impl<S: Private> Shared<S> {
    /// Whether the variable names one.
    pub(super) fn is_given() -> bool {
        std::env::var(S::VARIABLE).is_ok_and(|url| !url.is_empty())
    }

    /// Starts a server, if none is given, and tells the tests of it.
    pub(super) fn for_tests(tests: &mut Command) -> Result<Self> {
        if Self::is_given() {
            eprintln!("xtask: using the server of {}", S::VARIABLE);
            return Ok(Self(None));
        }
        let server = S::start()?;
        eprintln!("xtask: a private {} server listens on {}", S::NAME, server.address());
        tests.env(S::VARIABLE, server.url());
        Ok(Self(Some(server)))
    }

    /// The server, if it is ours.
    pub(super) fn server(&self) -> Option<&S> {
        self.0.as_ref()
    }

    /// Runs tests that know of it, and shows its log if they fail; answers whether all are well.
    pub(super) fn run(&self, tests: &mut Command, tally: &mut Tally) -> Result<bool> {
        let well = process::run_seen(tests, |line| tally.see(line))?.success();
        if !well {
            self.show_log();
        }
        Ok(well)
    }

    /// Prints the end of its log, if it is ours.
    pub(super) fn show_log(&self) {
        if let Some(server) = &self.0 {
            eprintln!("xtask: the end of the {} server's log:\n{}", S::NAME, server.log_tail());
        }
    }
}
