//! Waiting for a server, reading its log, and signals to all of its processes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::watchdog::Watchdog;

/// How long a server may take to get ready, on a machine that is busy with a build.
const READY: Duration = Duration::from_mins(1);

/// Waits until `ready` says so.
///
/// # Errors
/// If the server ends first or takes longer than a minute; the error has the end of its log.
pub(super) fn wait_until_ready(
    name: &str,
    watchdog: &mut Watchdog,
    log: &Path,
    mut ready: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let begin = Instant::now();
    loop {
        if let Some(status) = watchdog.ended()? {
            bail!("{name} ended with {status} at its start:\n{}", tail(log));
        }
        if ready()? {
            return Ok(());
        }
        if begin.elapsed() > READY {
            bail!("{name} is not ready after {} s:\n{}", READY.as_secs(), tail(log));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The last lines of a log.
pub(super) fn tail(log: &Path) -> String {
    let text = match fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("(no log at {}: {error})", log.display()),
    };
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// Sends a signal to a server and to the processes that it has started.
pub(super) fn signal_tree(server: Pid, signal: Signal) -> Result<()> {
    // The parent first, so that a stopped server starts no further process meanwhile.
    kill_process(server, signal).with_context(|| format!("cannot signal process {server:?}"))?;
    for child in children(server)? {
        // One that has just ended is no failure.
        let _ = kill_process(child, signal);
    }
    Ok(())
}

fn children(parent: Pid) -> Result<Vec<Pid>> {
    let parent = parent.as_raw_nonzero().get();
    let pairs = if Path::new("/proc/self/stat").exists() { from_proc()? } else { from_ps()? };
    Ok(pairs.into_iter().filter(|(_, of)| *of == parent).filter_map(|(pid, _)| Pid::from_raw(pid)).collect())
}

/// Each process and its parent, as Linux tells.
fn from_proc() -> Result<Vec<(i32, i32)>> {
    let pairs = fs::read_dir("/proc")?.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // `pid (name) state parent …`; the name may have spaces and brackets.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    });
    Ok(pairs.collect())
}

/// Each process and its parent, as `ps` tells.
fn from_ps() -> Result<Vec<(i32, i32)>> {
    let output = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output().context("cannot run `ps`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let pairs = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    Ok(pairs.collect())
}
