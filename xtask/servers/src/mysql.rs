//! A private MySQL server.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::install::{MYSQL, Program};
use super::local::{Kind, Local};
use super::mariadb::is_ready;
use super::unpacked::Unpacked;
use super::{Folder, cluster};

const KIND: Kind = Kind {
    name: "the MySQL server",
    end: "TERM",
    crash: Signal::KILL,
    pid_file: "mysqld.pid",
    port_is_taken: "already in use",
};

/// A MySQL server of our own, on a port of this machine only, where `root` has no password. Dropping it stops it and
/// removes its files. What disturbs a server is done to [`MariaDb`](super::MariaDb); this one is there to ask.
#[derive(Debug)]
pub struct MySql {
    local: Local,
    version: String,
}

impl MySql {
    /// Starts a server with these settings over the defaults of a test, which are those of
    /// [`MariaDb`](super::MariaDb::start).
    ///
    /// # Errors
    /// If MySQL has not been fetched (see [`Program::MySql`]) or the server does not start; the error has the end
    /// of its log.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self> {
        Program::MySql.folder()?;
        let programs = Unpacked::find(MYSQL).context("MySQL is gone")?;
        let output = programs.command("usr/sbin/mysqld")?.arg("--version").current_dir("/").output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = said.split("Ver ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let version = version.with_context(|| format!("mysqld --version: {output:?}"))?.to_owned();
        let folder = Folder::new("mysql")?;
        cluster::mysql(&programs, &folder.path().join("data"))?;
        let mut mysql = Self { local: Local::new(&KIND, folder), version };
        let begin = programs.command_line("usr/sbin/mysqld")?;
        let line = |local: &Local| command_line(&begin, &programs, settings, local);
        mysql.local.start_on_a_free_port(line, is_ready)?;
        Ok(mysql)
    }

    /// Its version, as `9.7.4`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The address of a database, over TCP, as `root`.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@{}/{database}", self.address())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.local.address()
    }

    /// The end of the server's log.
    pub fn log_tail(&self) -> String {
        self.local.log_tail()
    }
}

fn command_line(
    begin: &[String],
    programs: &Unpacked,
    settings: &[(&str, &str)],
    local: &Local,
) -> Vec<String> {
    let folder = local.folder().display();
    let defaults = [
        ("basedir", programs.path("usr").display().to_string()),
        ("lc_messages_dir", programs.path("usr/share/mysql").display().to_string()),
        ("secure_file_priv", "NULL".to_owned()),
        ("datadir", format!("{folder}/data")),
        ("tmpdir", folder.to_string()),
        ("port", local.address().port().to_string()),
        ("bind_address", "127.0.0.1".to_owned()),
        ("socket", format!("{folder}/mysql.sock")),
        ("pid_file", format!("{folder}/{}", KIND.pid_file)),
        ("skip_name_resolve", "ON".to_owned()),
        ("mysqlx", "OFF".to_owned()),
        ("disable_log_bin", "ON".to_owned()),
        ("innodb_flush_method", "nosync".to_owned()),
        ("max_connections", "200".to_owned()),
        ("innodb_redo_log_capacity", "32M".to_owned()),
        ("innodb_buffer_pool_size", "32M".to_owned()),
        ("innodb_buffer_pool_dump_at_shutdown", "OFF".to_owned()),
        ("innodb_buffer_pool_load_at_startup", "OFF".to_owned()),
        ("table_open_cache", "400".to_owned()),
    ];
    let defaults = defaults.iter().map(|(name, value)| format!("--{name}={value}"));
    let settings = settings.iter().map(|(name, value)| format!("--{name}={value}"));
    let mut line = begin.to_vec();
    line.push("--no-defaults".into());
    line.extend(defaults.chain(settings));
    line
}
