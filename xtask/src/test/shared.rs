//! The servers that tests make their databases on: private ones, or those that variables name.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;
use xtask::servers::{MariaDb, Postgres};

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

/// One that all tests of a run share; `None` if the variable names another.
#[derive(Debug)]
pub(super) struct Shared<S>(Option<S>);

impl<S: Private> Shared<S> {
    /// Starts a server, if none is given, and tells the tests of it.
    pub(super) fn for_tests(tests: &mut Command) -> Result<Self> {
        let given = std::env::var(S::VARIABLE).is_ok_and(|url| !url.is_empty());
        if given {
            eprintln!("xtask: using the server of {}", S::VARIABLE);
            return Ok(Self(None));
        }
        let server = S::start()?;
        eprintln!("xtask: a private {} server listens on {}", S::NAME, server.address());
        tests.env(S::VARIABLE, server.url());
        Ok(Self(Some(server)))
    }

    /// Prints the end of its log, if it is ours.
    pub(super) fn show_log(&self) {
        if let Some(server) = &self.0 {
            eprintln!("xtask: the end of the {} server's log:\n{}", S::NAME, server.log_tail());
        }
    }
}
