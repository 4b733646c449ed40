//! What every database server of ours has in common: a process in a folder, on a port.

use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use super::watchdog::Watchdog;
use super::{Folder, account, control, port};

/// How one kind of server is dealt with.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The name of the signal that ends it in good order.
    pub(super) end: &'static str,
    /// The signal that ends it as a crash does.
    pub(super) crash: Signal,
    /// Where it writes its process id, in its folder; the first line begins with it.
    pub(super) pid_file: &'static str,
    /// What its log says when somebody else has its port.
    pub(super) port_is_taken: &'static str,
}

/// A server that may run or not. Dropping it stops it and removes its files.
#[derive(Debug)]
pub(super) struct Local {
    // Before the folder: the server ends first.
    server: Option<Watchdog>,
    kind: &'static Kind,
    port: u16,
    folder: Folder,
}

impl Local {
    /// A server that does not run yet, with its files in this folder.
    pub(super) fn new(kind: &'static Kind, folder: Folder) -> Self {
        Self { server: None, kind, port: 0, folder }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Starts it on a port that is free, with the command line for that port.
    pub(super) fn start_on_a_free_port(
        &mut self,
        line: impl Fn(&Self) -> Vec<String>,
        ready: impl Fn(&Self) -> bool,
    ) -> Result<()> {
        for _ in 0..5 {
            self.port = port::free_port()?;
            match self.start(&line(self), &ready) {
                Err(error) if format!("{error:#}").contains(self.kind.port_is_taken) => {}
                other => return other,
            }
        }
        self.start(&line(self), &ready)
    }

    /// Starts it with this command line, after stopping it if need be.
    pub(super) fn start(&mut self, line: &[String], ready: impl Fn(&Self) -> bool) -> Result<()> {
        self.stop();
        let _ = fs::remove_file(self.pid_file());
        let log = self.log();
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let mut shell = account::command("/bin/sh")?;
        shell.current_dir(self.folder()).stdout(output.try_clone()?).stderr(output);
        let mut server = Watchdog::over_server(shell, self.kind.end, line)?;
        control::wait_until_ready(self.kind.name, &mut server, &log, || Ok(ready(self)))?;
        self.server = Some(server);
        Ok(())
    }

    pub(super) fn stop(&mut self) {
        if self.server.is_some() {
            let _ = self.resume();
        }
        self.server = None;
    }

    pub(super) fn crash(&mut self) -> Result<()> {
        kill_process(self.pid()?, self.kind.crash).context("cannot signal the server")?;
        self.server = None;
        // What crashes leaves it behind.
        let _ = fs::remove_file(self.pid_file());
        Ok(())
    }

    pub(super) fn pause(&self) -> Result<()> {
        control::signal_tree(self.pid()?, Signal::STOP)
    }

    pub(super) fn resume(&self) -> Result<()> {
        control::signal_tree(self.pid()?, Signal::CONT)
    }

    pub(super) fn log_tail(&self) -> String {
        control::tail(&self.log())
    }

    pub(super) fn pid_file(&self) -> PathBuf {
        self.folder().join(self.kind.pid_file)
    }

    fn log(&self) -> PathBuf {
        self.folder().join("server.log")
    }

    pub(super) fn pid(&self) -> Result<Pid> {
        let text = fs::read_to_string(self.pid_file())
            .with_context(|| format!("{} does not run", self.kind.name))?;
        let pid = text.lines().next().and_then(|line| line.trim().parse().ok()).and_then(Pid::from_raw);
        pid.with_context(|| format!("no process id in {text:?}"))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stop();
    }
}
