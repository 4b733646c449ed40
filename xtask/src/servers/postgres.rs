//! A private PostgreSQL server.

use std::fs::{self, File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::install::Program;
use super::watchdog::Watchdog;
use super::{Folder, SUPERUSER, account, cluster, control, port};

/// A PostgreSQL server of our own, without a password, on a port of this machine only and on a socket in its
/// folder. Dropping it stops it and removes its files.
#[derive(Debug)]
pub struct Postgres {
    // Before the folder: the server ends first.
    server: Option<Watchdog>,
    pub(super) programs: PathBuf,
    port: u16,
    settings: Vec<(String, String)>,
    folder: Folder,
}

impl Postgres {
    /// Starts a server with these settings (`("max_connections", "20")`) over the defaults of a test:
    /// `fsync` is off, so that a crash of the *machine* would break the cluster; a crash of the server
    /// does not. Say `("fsync", "on")` for the real thing.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or the server does not start; the error has the end of its log.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let programs = Program::Postgres.folder()?;
        let folder = Folder::new("pg")?;
        cluster::create(&programs, &folder.path().join("data"))?;
        Self::on(programs, folder, settings)
    }

    /// Starts a server on a data directory that is there already.
    pub(super) fn on(programs: PathBuf, folder: Folder, settings: &[(&str, &str)]) -> Result<Self> {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut postgres = Self { server: None, programs, port: 0, settings, folder };
        for _ in 0..5 {
            postgres.port = port::free_port()?;
            match postgres.start_again() {
                Err(error) if format!("{error:#}").contains("in use") => {}
                other => return other.map(|()| postgres),
            }
        }
        postgres.start_again()?;
        Ok(postgres)
    }

    /// The address of a database, over TCP, as the superuser.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The address of a database by way of another port: a [`Proxy`](super::Proxy)'s, for example.
    pub fn url_by_port(&self, port: u16, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{port}/{database}")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The folder of its unix socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the server: sessions are ended, what is committed stays. Nothing happens if it is stopped.
    pub fn stop(&mut self) {
        if self.server.is_some() {
            let _ = self.resume();
        }
        self.server = None;
    }

    /// Starts the server after [`stop`](Self::stop) or [`crash`](Self::crash), on the same port.
    ///
    /// # Errors
    /// If it does not start; the error has the end of its log.
    pub fn start_again(&mut self) -> Result<()> {
        self.stop();
        let _ = fs::remove_file(self.pid_file());
        let log = self.folder.path().join("server.log");
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let mut shell = account::command("/bin/sh")?;
        shell.current_dir(self.folder.path()).stdout(output.try_clone()?).stderr(output);
        // Fast shutdown.
        let mut server = Watchdog::over_server(shell, "INT", &self.command_line())?;
        control::wait_until_ready("the PostgreSQL server", &mut server, &log, || Ok(self.is_ready()))?;
        self.server = Some(server);
        Ok(())
    }

    /// Stops the server and starts it again. Every session is lost.
    ///
    /// # Errors
    /// If it does not start; the error has the end of its log.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        self.start_again()
    }

    /// Ends the server as a crash does: no session is told, nothing is written, recovery is at the next start.
    ///
    /// # Errors
    /// If it does not run.
    pub fn crash(&mut self) -> Result<()> {
        kill_process(self.pid()?, Signal::QUIT).context("cannot signal the server")?;
        self.server = None;
        Ok(())
    }

    /// Freezes the server with all of its sessions: connections stay open, and nobody answers.
    ///
    /// # Errors
    /// If it does not run.
    pub fn pause(&self) -> Result<()> {
        control::signal_tree(self.pid()?, Signal::STOP)
    }

    /// Goes on after [`pause`](Self::pause).
    ///
    /// # Errors
    /// If it does not run.
    pub fn resume(&self) -> Result<()> {
        control::signal_tree(self.pid()?, Signal::CONT)
    }

    /// Runs statements in a database, with `psql`, and gives back what they answer, unaligned.
    ///
    /// # Errors
    /// If a statement fails; the error has what `psql` says.
    pub fn execute(&self, database: &str, statements: &str) -> Result<String> {
        let output = Command::new(self.programs.join("psql"))
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

    /// The end of the server's log.
    pub fn log_tail(&self) -> String {
        control::tail(&self.folder.path().join("server.log"))
    }

    fn command_line(&self) -> Vec<String> {
        let folder = self.folder.path().display();
        let mut line = vec![
            self.programs.join("postgres").display().to_string(),
            "-D".into(),
            format!("{folder}/data"),
            "-p".into(),
            self.port.to_string(),
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
        let settings = self.settings.iter().map(|(name, value)| format!("{name}={value}"));
        // A later one wins.
        line.extend(defaults.chain(settings).flat_map(|setting| ["-c".to_owned(), setting]));
        line
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("data/postmaster.pid")
    }

    fn pid(&self) -> Result<Pid> {
        let text = fs::read_to_string(self.pid_file()).context("the PostgreSQL server does not run")?;
        let pid = text.lines().next().and_then(|line| line.trim().parse().ok()).and_then(Pid::from_raw);
        pid.with_context(|| format!("no process id in {text:?}"))
    }

    /// The server says so itself, in the last line of the file with its process id.
    fn is_ready(&self) -> bool {
        let said = fs::read_to_string(self.pid_file())
            .is_ok_and(|text| text.lines().nth(7).is_some_and(|status| status.trim() == "ready"));
        said && TcpStream::connect(self.address()).is_ok()
    }

    pub(super) fn data_is_there(folder: &Folder) -> bool {
        File::open(folder.path().join("data/PG_VERSION")).is_ok()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}
