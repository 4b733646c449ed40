//! Every test there is, on servers of our own.

mod report;
mod runner;
mod shared;
mod tally;

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use servers::Folder;
use servers::install::Program as Installed;

use self::report::Report;
use self::runner::Round;
use self::shared::{Kind, Servers};
use self::tally::Tally;
use crate::programs::Program;
use crate::{Verdict, interrupt, process, programs};

/// The file in which tests write what they could not check.
const REPORT: &str = "OUTBOX_TEST_REPORT";

/// Runs every test, with a private PostgreSQL server (or the one that `OUTBOX_TEST_POSTGRES_URL` names, as
/// its superuser) and a private MariaDB server (or the MariaDB or MySQL that `OUTBOX_TEST_MYSQL_URL` names, as
/// its `root`). Without arguments, several test binaries run at once, and what is tested on these servers runs again on
/// private servers of MySQL and of the newest PostgreSQL, where they can be fetched. The last lines count what ran on
/// which database, and what could not be checked.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Passed on to `cargo test`: `-p outbox-sqlx`, a test's name, `-- --nocapture`.
    #[arg(last = true)]
    cargo: Vec<String>,
    /// What takes long is left out: MariaDB and MySQL, Diesel, the tests in the documentation, and those that break
    /// something on purpose.
    #[arg(long, conflicts_with = "cargo")]
    fast: bool,
    /// A private MySQL server in place of MariaDB's, for the tests that share one.
    #[arg(long)]
    mysql: bool,
    /// A private server of the newest PostgreSQL, for the tests that share one.
    #[arg(long)]
    newest_postgres: bool,
}

/// Runs the tests; answers whether all are well, and what to say last.
pub(crate) fn run(options: &Options) -> Result<Verdict> {
    interrupt::listen();
    let folder = Folder::new("test")?;
    let file = folder.path().join("report");
    std::fs::write(&file, "")?;

    // They get ready while the tests are built.
    let shared = Servers::start(&options.shared());
    let again: Vec<_> = options.again().into_iter().map(|kind| (kind, Servers::start(&[kind]))).collect();
    // Some tests start servers of their own, whatever server the others use.
    if !options.fast {
        Installed::Postgres.ensure()?;
        Installed::PgBouncer.ensure()?;
        Installed::MariaDb.ensure()?;
    }

    // Built first, which also tells the binaries' crates; a build that fails is told by cargo.
    let mut build = test_command(options);
    build.arg("--no-run").args(options.of_cargo());
    let Some(binaries) = programs::build(&mut build)? else {
        return Ok(Verdict { well: false, last: "no test ran: the tests do not build".to_owned() });
    };

    let (well, tallies) = if options.cargo.is_empty() {
        run_at_once(&binaries, options.fast, &shared, &again, &file)?
    } else {
        let mut tally = Tally::of(&binaries);
        (run_named(options, &shared, &mut tally, &file)?, vec![tally])
    };
    if !well {
        shared.show_logs();
    }

    // Where everything runs, a database without a test is a mistake of ours.
    let missing = if options.is_everything() { tallies[0].databases_without_a_test() } else { Vec::new() };
    let report = Report::read(&std::fs::read_to_string(&file)?);
    for line in report.unchecked() {
        println!("{line}");
    }
    for database in &missing {
        println!("no test ran on {database}");
    }
    let mut last = format!("{}; {report}", tallies[0]);
    for ((kind, servers), tally) in again.iter().zip(&tallies[1..]) {
        match servers.ready() {
            Ok(servers) => println!("once more, on {}: {tally}", servers[0].name()?),
            // It comes from where nothing is promised to be there: said, and no failure.
            Err(error) => last = format!("{last}; NO TEST RAN ON {}: {error}", kind.name()),
        }
    }
    Ok(Verdict { well: well && missing.is_empty(), last })
}

/// Runs test binaries on the shared servers and, some of them, again on others: all at once.
fn run_at_once(
    binaries: &[Program],
    fast: bool,
    shared: &Servers,
    again: &[(Kind, Servers)],
    report: &Path,
) -> Result<(bool, Vec<Tally>)> {
    let chosen = |which: &dyn Fn(&Program) -> bool| {
        binaries.iter().filter(|binary| binary.is_test && which(binary)).collect()
    };
    let first = chosen(&|binary| !fast || is_fast(binary));
    let mut rounds =
        vec![Round { servers: shared, binaries: first, without: fast.then_some(BROKEN), has_docs: !fast }];
    for (kind, servers) in again {
        let some = chosen(&|binary| kind.is_tested_again_by(binary));
        rounds.push(Round { servers, binaries: some, without: None, has_docs: false });
    }
    let mut tallies: Vec<Tally> = rounds.iter().map(|_| Tally::of(binaries)).collect();
    let well = runner::run(&rounds, report, |round, line| tallies[round].see(line))?;
    Ok((well, tallies))
}

/// Has cargo run the tests that are named.
fn run_named(options: &Options, shared: &Servers, tally: &mut Tally, report: &Path) -> Result<bool> {
    let mut command = test_command(options);
    command.arg("--no-fail-fast").args(&options.cargo).env(REPORT, report);
    for server in shared.ready()? {
        server.tell(&mut command);
    }
    let status = process::run_heard(&mut command, |line| {
        print!("{line}");
        tally.see(line);
        Ok(())
    })?;
    Ok(status.success())
}

/// What `--fast` does not build. Diesel's tests are those of sqlx once more.
const SLOW: [&str; 6] = ["bench", "demo", "demo-diesel", "demo-otel", "outbox-diesel", "servers"];

/// What `--fast` leaves out of the binaries that it runs: tests that wait for what they broke, or start servers.
const BROKEN: &str = "::faults::";

/// Whether a binary's tests are in memory, on SQLite, or on PostgreSQL.
fn is_fast(binary: &Program) -> bool {
    !binary.name.starts_with("mysql")
}

fn test_command(options: &Options) -> Command {
    let mut command = process::cargo(&["test", "--all-features"]);
    if !names_packages(options.of_cargo()) {
        command.arg("--workspace");
    }
    if options.fast {
        command.args(SLOW.iter().flat_map(|package| ["--exclude", package]));
    }
    command
}

impl Options {
    fn is_everything(&self) -> bool {
        self.cargo.is_empty() && !self.fast && !self.mysql && !self.newest_postgres
    }

    /// The servers that all tests share.
    fn shared(&self) -> Vec<Kind> {
        let postgres = if self.newest_postgres { Kind::NewestPostgres } else { Kind::Postgres };
        let mysql = if self.mysql { Kind::MySql } else { Kind::MariaDb };
        if self.fast { vec![postgres] } else { vec![postgres, mysql] }
    }

    /// The servers that some tests run on again.
    fn again(&self) -> Vec<Kind> {
        let kinds = [Kind::NewestPostgres, Kind::MySql];
        kinds.into_iter().filter(|kind| self.is_everything() && !kind.is_given()).collect()
    }

    /// What is for cargo, and not for the tests that it runs.
    fn of_cargo(&self) -> &[String] {
        self.cargo.split(|argument| argument == "--").next().unwrap_or_default()
    }
}

fn names_packages(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument.starts_with("-p") || argument.starts_with("--package"))
}
