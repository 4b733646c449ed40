//! A private `PgBouncer` in front of a private PostgreSQL server.

use std::fmt;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};

use anyhow::Result;

use super::install::Program;
use super::watchdog::Watchdog;
use super::{Folder, Postgres, SUPERUSER, account, control, port};

/// When the pooler takes a server's connection back from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// When the client disconnects.
    Session,
    /// After each transaction: session state, named statements and LISTEN do not work.
    Transaction,
}

impl fmt::Display for PoolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
        })
    }
}

/// A pooler of our own. Dropping it stops it.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    _server: Watchdog,
    _folder: Folder,
}

impl PgBouncer {
    /// Starts a pooler for all databases of a server, with at most eight server connections for each, so that
    /// clients really share them.
    ///
    /// # Errors
    /// If `PgBouncer` is not installed or does not start; the error has the end of its log.
    pub fn start(postgres: &Postgres, mode: PoolMode) -> Result<Self> {
        Self::with(&(ini(postgres, mode) + "ignore_startup_parameters = extra_float_digits\n"))
    }

    /// Starts a pooler as [`start`](Self::start) does, and leaves it at what `PgBouncer` refuses by default.
    ///
    /// # Errors
    /// As those of [`start`](Self::start).
    pub fn start_as_it_comes(postgres: &Postgres, mode: PoolMode) -> Result<Self> {
        Self::with(&ini(postgres, mode))
    }

    fn with(ini: &str) -> Result<Self> {
        let program = Program::PgBouncer.folder()?.join("pgbouncer");
        let folder = Folder::new("pgbouncer")?;
        let port = port::free_port()?;
        let settings = folder.path().join("pgbouncer.ini");
        fs::write(&settings, format!("{ini}listen_port = {port}\n"))?;
        let log = folder.path().join("pgbouncer.log");
        let output = File::create(&log)?;
        let mut shell = account::command("/bin/sh")?;
        shell.current_dir(folder.path()).stdout(output.try_clone()?).stderr(output);
        let line = [program.into_os_string(), settings.into_os_string()];
        let mut server = Watchdog::over_server(shell, "TERM", &line)?;
        control::wait_until_ready("PgBouncer", &mut server, &log, || {
            Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
        })?;
        Ok(Self { port, _server: server, _folder: folder })
    }

    /// The address of a database by way of the pooler.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }
}

fn ini(postgres: &Postgres, mode: PoolMode) -> String {
    let server = postgres.address();
    format!(
        "[databases]\n\
         * = host={} port={} user={SUPERUSER}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = {mode}\n\
         default_pool_size = 8\n\
         max_client_conn = 200\n",
        server.ip(),
        server.port(),
    )
}
