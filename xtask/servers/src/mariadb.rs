//! A private MariaDB server.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use super::install::{Program, mariadbd};
use super::local::{Kind, Local};
use super::{Folder, cluster};

const KIND: Kind = Kind {
    name: "the MariaDB server",
    end: "TERM",
    // Each of its other signals ends it in good order.
    crash: Signal::KILL,
    pid_file: "mariadbd.pid",
    port_is_taken: "already in use",
};

/// The version of the protocol, in the first packet that a server sends.
const PROTOCOL: u8 = 10;

/// A MariaDB server of our own, on a port of this machine only and on a socket in its folder, where `root` has no
/// password. Dropping it stops it and removes its files.
#[derive(Debug)]
pub struct MariaDb {
    local: Local,
    programs: PathBuf,
    settings: Vec<(String, String)>,
}

impl MariaDb {
    /// Starts a server with these settings (`("innodb_lock_wait_timeout", "5")`, as in an option file) over
    /// the defaults of a test: each commit is written at once, but the disk is not waited for, so that a crash
    /// of the *machine* would break the data; a crash of the server does not. Say
    /// `("innodb_flush_method", "fsync")` for the real thing. No option file is read.
    ///
    /// # Errors
    /// If MariaDB is not installed or the server does not start; the error has the end of its log.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let programs = Program::MariaDb.folder()?;
        let folder = Folder::new("maria")?;
        cluster::mariadb(&programs, &folder.path().join("data"))?;
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut mariadb = Self { local: Local::new(&KIND, folder), programs, settings };
        let (programs, settings) = (&mariadb.programs, &mariadb.settings);
        mariadb.local.start_on_a_free_port(|local| command_line(programs, settings, local), is_ready)?;
        Ok(mariadb)
    }

    /// The address of a database, over TCP, as `root`.
    pub fn url(&self, database: &str) -> String {
        self.url_by_port(self.address().port(), database)
    }

    /// The address of a database by way of another port: a [`Proxy`](super::Proxy)'s, for example.
    pub fn url_by_port(&self, port: u16, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{port}/{database}")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.local.address()
    }

    /// Its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.local.folder().join("mariadb.sock")
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

    /// Runs statements in a database (`mysql` is always there), with the command-line client, and gives back
    /// what they answer: a line per row, a tab between columns.
    ///
    /// # Errors
    /// If a statement fails; the error has what the client says.
    pub fn execute(&self, database: &str, statements: &str) -> Result<String> {
        let output = Command::new(self.programs.join("mariadb"))
            .args(["--no-defaults", "--protocol=TCP", "--host=127.0.0.1", "--user=root"])
            .arg(format!("--port={}", self.address().port()))
            .args(["--default-character-set=utf8mb4", "--batch", "--raw", "--skip-column-names"])
            .arg(format!("--database={database}"))
            .arg(format!("--execute={statements}"))
            .output()
            .context("cannot run the client `mariadb`")?;
        ensure!(output.status.success(), "mariadb: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Makes an empty database.
    ///
    /// # Errors
    /// If it cannot be made: there is one of that name.
    pub fn create_database(&self, name: &str) -> Result<()> {
        self.execute("mysql", &format!("CREATE DATABASE `{}`", name.replace('`', "``"))).map(drop)
    }

    /// The end of the server's log.
    pub fn log_tail(&self) -> String {
        self.local.log_tail()
    }
}

fn command_line(programs: &Path, settings: &[(String, String)], local: &Local) -> Vec<String> {
    let folder = local.folder().display();
    let program = mariadbd(programs).unwrap_or_else(|| "mariadbd".into());
    let defaults = [
        ("datadir", format!("{folder}/data")),
        // A server that starts removes what it takes for leftovers here: another's temporary tables, in a shared one.
        ("tmpdir", folder.to_string()),
        ("port", local.address().port().to_string()),
        ("bind_address", "127.0.0.1".to_owned()),
        ("socket", format!("{folder}/mariadb.sock")),
        ("pid_file", format!("{folder}/{}", KIND.pid_file)),
        ("skip_name_resolve", "ON".to_owned()),
        // What packages set; without an option file it would be latin1.
        ("character_set_server", "utf8mb4".to_owned()),
        ("collation_server", "utf8mb4_general_ci".to_owned()),
        ("innodb_flush_method", "nosync".to_owned()),
        ("max_connections", "200".to_owned()),
        // One server per binary at once, on a small machine that may allow few open files.
        ("innodb_log_file_size", "16M".to_owned()),
        ("innodb_buffer_pool_size", "32M".to_owned()),
        ("innodb_buffer_pool_dump_at_shutdown", "OFF".to_owned()),
        ("innodb_buffer_pool_load_at_startup", "OFF".to_owned()),
        ("aria_pagecache_buffer_size", "1M".to_owned()),
        ("key_buffer_size", "1M".to_owned()),
        ("table_open_cache", "400".to_owned()),
        ("table_open_cache_instances", "1".to_owned()),
    ];
    let defaults = defaults.iter().map(|(name, value)| format!("--{name}={value}"));
    let settings = settings.iter().map(|(name, value)| format!("--{name}={value}"));
    let mut line = vec![program.display().to_string(), "--no-defaults".into()];
    // A later one wins.
    line.extend(defaults.chain(settings));
    line
}

/// The file with its process id is written once it has its port; the greeting once it serves.
pub(super) fn is_ready(local: &Local) -> bool {
    local.pid_file().exists() && greeting(local.address()).is_ok_and(|version| version == PROTOCOL)
}

fn greeting(address: SocketAddr) -> std::io::Result<u8> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    // A packet's length, in three bytes, and its number come first.
    let mut packet = [0; 5];
    stream.read_exact(&mut packet)?;
    Ok(packet[4])
}
