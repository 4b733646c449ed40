//! A private PostgreSQL server.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal};

use super::install::Program;
use super::local::{Kind, Local};
use super::{Folder, SUPERUSER, cluster};

const KIND: Kind = Kind {
    name: "the PostgreSQL server",
    // Fast shutdown.
    end: "INT",
    crash: Signal::QUIT,
    pid_file: "data/postmaster.pid",
    port_is_taken: "in use",
};

/// A PostgreSQL server of our own, without a password, on a port of this machine only and on a socket in its
/// folder. Dropping it stops it and removes its files.
#[derive(Debug)]
pub struct Postgres {
    local: Local,
    pub(super) programs: PathBuf,
    settings: Vec<(String, String)>,
}

impl Postgres {
    /// Starts a server with these settings (`("max_connections", "20")`) over the defaults of a test:
    /// `fsync` is off, so that a crash of the *machine* would break the cluster; a crash of the server
    /// does not. Say `("fsync", "on")` for the real thing.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or the server does not start; the error has the end of its log.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(Program::Postgres, settings)
    }

    /// Starts a server of the newest version like [`start`](Self::start). It has no standby: there are no programs to
    /// make one with.
    ///
    /// # Errors
    /// If the newest PostgreSQL has not been fetched (see [`Program::NewestPostgres`]) or the server does not start; the
    /// error has the end of its log.
    pub fn start_newest(settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(Program::NewestPostgres, settings)
    }

    fn of(program: Program, settings: &[(&str, &str)]) -> Result<Self> {
        let programs = program.folder()?;
        let folder = Folder::new("pg")?;
        cluster::postgres(&programs, &folder.path().join("data"))?;
        Self::on(programs, folder, settings)
    }

    /// Starts a server on a data directory that is there already.
    pub(super) fn on(programs: PathBuf, folder: Folder, settings: &[(&str, &str)]) -> Result<Self> {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut postgres = Self { local: Local::new(&KIND, folder), programs, settings };
        let (programs, settings) = (&postgres.programs, &postgres.settings);
        postgres.local.start_on_a_free_port(|local| command_line(programs, settings, local), is_ready)?;
        Ok(postgres)
    }

    /// The address of a database, over TCP, as the superuser.
    pub fn url(&self, database: &str) -> String {
        self.url_by_port(self.address().port(), database)
    }

    /// The address of a database by way of another port: a [`Proxy`](super::Proxy)'s, for example.
    pub fn url_by_port(&self, port: u16, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{port}/{database}")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.local.address()
    }

    /// The folder of its unix socket.
    pub fn socket_folder(&self) -> &Path {
        self.local.folder()
    }

    /// Stops the server: sessions are ended, what is committed stays. Nothing happens if it is stopped.
    pub fn stop(&mut self) {
        self.local.stop();
    }

    /// Starts the server after [`stop`](Self::stop) or [`crash`](Self::crash), on the same port.
    ///
    /// # Errors
    /// If it does not start; the error has the end of its log.
    pub fn start_again(&mut self) -> Result<()> {
        let line = command_line(&self.programs, &self.settings, &self.local);
        self.local.start(&line, is_ready)
    }

    /// Stops the server and starts it again. Every session is lost.
    ///
    /// # Errors
    /// If it does not start; the error has the end of its log.
    pub fn restart(&mut self) -> Result<()> {
        self.start_again()
    }

    /// Ends the server as a crash does: no session is told, nothing is written, recovery is at the next start.
    ///
    /// # Errors
    /// If it does not run.
    pub fn crash(&mut self) -> Result<()> {
        self.local.crash()
    }

    /// Freezes the server with all of its sessions: connections stay open, and nobody answers.
    ///
    /// # Errors
    /// If it does not run.
    pub fn pause(&self) -> Result<()> {
        self.local.pause()
    }

    /// Goes on after [`pause`](Self::pause).
    ///
    /// # Errors
    /// If it does not run.
    pub fn resume(&self) -> Result<()> {
        self.local.resume()
    }

    /// Runs statements in a database, with `psql`, and gives back what they answer, unaligned.
    ///
    /// # Errors
    /// If a statement fails; the error has what `psql` says.
    pub fn execute(&self, database: &str, statements: &str) -> Result<String> {
        // The newest comes without it; the system's understands it.
        let programs = if self.programs.join("psql").is_file() {
            self.programs.clone()
        } else {
            Program::Postgres.folder()?
        };
        let output = Command::new(programs.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"])
            .args(["--command", statements])
            .arg(self.url(database))
            .output()
            .context("cannot run psql")?;
        ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Makes an empty database.
    ///
    /// # Errors
    /// If it cannot be made: there is one of that name.
    pub fn create_database(&self, name: &str) -> Result<()> {
        self.execute("postgres", &format!("CREATE DATABASE \"{}\"", name.replace('"', "\"\""))).map(drop)
    }

    /// Its version, as `18.4`.
    ///
    /// # Errors
    /// If it does not run.
    pub fn version(&self) -> Result<String> {
        self.execute("postgres", "SELECT split_part(current_setting('server_version'), ' ', 1)")
    }

    /// The server's first process, the parent of all others.
    ///
    /// # Errors
    /// If it does not run.
    pub fn pid(&self) -> Result<Pid> {
        self.local.pid()
    }

    /// The end of the server's log.
    pub fn log_tail(&self) -> String {
        self.local.log_tail()
    }

    pub(super) fn data_is_there(folder: &Folder) -> bool {
        File::open(folder.path().join("data/PG_VERSION")).is_ok()
    }
}

fn command_line(programs: &Path, settings: &[(String, String)], local: &Local) -> Vec<String> {
    let folder = local.folder().display();
    let mut line = vec![
        programs.join("postgres").display().to_string(),
        "-D".into(),
        format!("{folder}/data"),
        "-p".into(),
        local.address().port().to_string(),
    ];
    let defaults = [
        ("listen_addresses", "127.0.0.1".to_owned()),
        ("unix_socket_directories", folder.to_string()),
        ("fsync", "off".to_owned()),
        ("max_connections", "200".to_owned()),
        // One server per binary at once, on a small machine.
        ("shared_buffers", "32MB".to_owned()),
    ];
    let defaults = defaults.iter().map(|(name, value)| format!("{name}={value}"));
    let settings = settings.iter().map(|(name, value)| format!("{name}={value}"));
    // A later one wins.
    line.extend(defaults.chain(settings).flat_map(|setting| ["-c".to_owned(), setting]));
    line
}

/// The server says so itself, in the last line of the file with its process id.
fn is_ready(local: &Local) -> bool {
    let said = fs::read_to_string(local.pid_file())
        .is_ok_and(|text| text.lines().nth(7).is_some_and(|status| status.trim() == "ready"));
    said && TcpStream::connect(local.address()).is_ok()
}
