//! Running other programs.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Pid;
use serde_json::Value;

use crate::interrupt::{self, Ends};

/// The `cargo` that runs us, in the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// A program, which does not get what cargo sets for us: another cargo would rebuild what asks for it.
pub(crate) fn program(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR") {
            command.env_remove(name);
        }
    }
    command
}

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Where cargo builds.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = output(&mut cargo(&["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(target.into())
}

/// Runs a command with our own output, in a process group of its own, and ends it when we are interrupted.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus> {
    let mut child = command
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let _ends = Ends::group(Pid::from_child(&child));
    let status = child.wait()?;
    if interrupt::is_interrupted() {
        bail!("interrupted");
    }
    Ok(status)
}

/// Runs a command like [`run`], and shows each line of its output, both streams in the order written, to `see`, which
/// is all that becomes of it.
pub(crate) fn run_heard(command: &mut Command, see: impl FnMut(&str) -> Result<()>) -> Result<ExitStatus> {
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    run_read(command, reader, see)
}

/// Runs a command like [`run`], and shows each line of its standard output to `see`, which is all that
/// becomes of it.
pub(crate) fn run_captured(command: &mut Command, see: impl FnMut(&str) -> Result<()>) -> Result<ExitStatus> {
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer);
    run_read(command, reader, see)
}

fn run_read(
    command: &mut Command,
    reader: PipeReader,
    mut see: impl FnMut(&str) -> Result<()>,
) -> Result<ExitStatus> {
    let mut child = command
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    // The command holds the pipe's writing end too: without this we would wait for ourselves.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _ends = Ends::group(Pid::from_child(&child));
    let mut lines = BufReader::new(reader);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        see(&String::from_utf8_lossy(&line))?;
        line.clear();
    }
    let status = child.wait()?;
    if interrupt::is_interrupted() {
        bail!("interrupted");
    }
    Ok(status)
}

/// What a command writes, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let (program, said) = (command.get_program().display(), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{program} ended with {}: {said}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}
