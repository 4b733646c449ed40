//! Several test binaries at once: many a test waits more than it computes.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use anyhow::Result;

use super::REPORT;
use super::shared::Servers;
use crate::process;
use crate::programs::Program;

/// How many run at once.
const AT_ONCE: usize = 4;

/// Test binaries that run on the same servers.
pub(super) struct Round<'a> {
    pub(super) servers: &'a Servers,
    pub(super) binaries: Vec<&'a Program>,
    /// Tests with this in their names are left out.
    pub(super) without: Option<&'static str>,
    /// Whether the tests in the documentation run as well.
    pub(super) has_docs: bool,
}

/// Tests that run in one process.
struct Job<'a> {
    /// The number of its round.
    round: usize,
    servers: &'a Servers,
    without: Option<&'static str>,
    /// `None` for cargo's own run of the tests in the documentation.
    binary: Option<&'a Program>,
}

/// What a job said.
struct Said {
    round: usize,
    lines: Vec<String>,
    status: ExitStatus,
}

/// Runs all rounds together, the binaries with the most tests first. Prints what each binary says when it has ended, and
/// shows it to `see`, with the number of the round. What it could not check it writes into the file `report`. Answers
/// whether all are well; a round without its servers is left out, which is for the caller to tell.
pub(super) fn run(rounds: &[Round<'_>], report: &Path, mut see: impl FnMut(usize, &str)) -> Result<bool> {
    let mut jobs = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        for binary in
            round.has_docs.then_some(None).into_iter().chain(round.binaries.iter().copied().map(Some))
        {
            let job = Job { round: number, servers: round.servers, without: round.without, binary };
            jobs.push((job.tests()?, job));
        }
    }
    jobs.sort_by_key(|(tests, _)| *tests);
    let jobs = Mutex::new(jobs);
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop();
    thread::scope(|scope| {
        let (sender, all_said) = mpsc::channel();
        for _ in 0..AT_ONCE {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some((_, job)) = next() {
                    // After an error nobody listens any more.
                    if let Some(said) = job.run(report).transpose()
                        && sender.send(said).is_err()
                    {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut well = true;
        for said in all_said {
            let Said { round, lines, status } = said?;
            print!("{}", lines.concat());
            for line in &lines {
                see(round, line);
            }
            well &= status.success();
        }
        Ok(well)
    })
}

impl Job<'_> {
    /// How many tests there are. To run those in the documentation takes long, since each is built.
    fn tests(&self) -> Result<usize> {
        let Some(binary) = self.binary else { return Ok(usize::MAX) };
        let list = process::output(command(binary).args(["--list", "--format=terse"]))?;
        Ok(list.lines().filter(|line| line.ends_with(": test")).count())
    }

    /// Runs the tests, unless they have no server.
    fn run(&self, report: &Path) -> Result<Option<Said>> {
        let Ok(servers) = self.servers.ready() else { return Ok(None) };
        let of_docs = ["test", "--doc", "--workspace", "--all-features", "--no-fail-fast"];
        let mut command = self.binary.map_or_else(|| process::cargo(&of_docs), command);
        for server in servers {
            server.tell(&mut command);
        }
        command.args(self.without.into_iter().flat_map(|without| ["--skip", without]));
        let mut lines = vec![self.binary.map(header).unwrap_or_default()];
        let status = process::run_heard(command.env(REPORT, report), |line| {
            lines.push(line.to_owned());
            Ok(())
        })?;
        Ok(Some(Said { round: self.round, lines, status }))
    }
}

/// A binary, where and as cargo would run it.
fn command(binary: &Program) -> Command {
    let mut command = process::program(&binary.path);
    command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder);
    command
}

/// What cargo says before it runs a binary.
fn header(binary: &Program) -> String {
    let source = binary.source.strip_prefix(&binary.folder).unwrap_or(&binary.source);
    let unit = if source.starts_with("tests") { "" } else { "unittests " };
    format!("\n     Running {unit}{} ({})\n", source.display(), binary.path.display())
}
