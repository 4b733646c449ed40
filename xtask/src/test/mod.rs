//! Every test there is, on servers of our own.

mod binaries;
mod report;
mod shared;
mod tally;

use std::process::Command;

use anyhow::Result;
use xtask::servers::install::Program;
use xtask::servers::{Folder, MariaDb, Postgres};

use self::binaries::Binaries;
use self::report::Report;
use self::shared::Shared;
use self::tally::Tally;
use crate::{interrupt, process};

/// The file in which tests write what they could not check.
const REPORT: &str = "OUTBOX_TEST_REPORT";

/// Runs every test, with a private PostgreSQL server (or the one that `OUTBOX_TEST_POSTGRES_URL` names, as
/// its superuser) and a private MariaDB server (or the MariaDB or MySQL that `OUTBOX_TEST_MYSQL_URL` names, as
/// its `root`). The last line counts what ran on which database, and what could not be checked.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Passed on to `cargo test`: `-p outbox-sqlx`, a test's name, `-- --nocapture`.
    #[arg(last = true)]
    cargo: Vec<String>,
}

/// Runs the tests; answers whether all are well.
pub(crate) fn run(options: &Options) -> Result<bool> {
    interrupt::listen();
    // Some tests start servers of their own, whatever server the others use.
    Program::Postgres.ensure()?;
    Program::PgBouncer.ensure()?;
    Program::MariaDb.ensure()?;
    let folder = Folder::new("test")?;
    let file = folder.path().join("report");
    std::fs::write(&file, "")?;

    // Built first, which also tells the binaries' crates; a build that fails is told by cargo.
    let mut binaries = Binaries::default();
    let mut build = test_command(options);
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    build.args(options.of_cargo());
    if !process::run_captured(&mut build, |message| binaries.see(message))?.success() {
        println!("no test ran: the tests do not build");
        return Ok(false);
    }

    let mut command = test_command(options);
    command.arg("--no-fail-fast").args(&options.cargo).env(REPORT, &file);
    let postgres = Shared::<Postgres>::for_tests(&mut command)?;
    let mariadb = Shared::<MariaDb>::for_tests(&mut command)?;

    let mut tally = Tally::of(binaries);
    let status = process::run_seen(&mut command, |line| tally.see(line))?;
    if !status.success() {
        postgres.show_log();
        mariadb.show_log();
    }
    drop((postgres, mariadb));

    let report = Report::read(&std::fs::read_to_string(&file)?);
    for line in report.unchecked() {
        println!("{line}");
    }
    // Without arguments everything runs, so that a database without a test is a mistake of ours.
    let everything = status.success() && options.cargo.is_empty();
    let missing = if everything { tally.databases_without_a_test() } else { Vec::new() };
    for database in &missing {
        println!("no test ran on {database}");
    }
    println!("{tally}; {report}");
    Ok(status.success() && missing.is_empty())
}

fn test_command(options: &Options) -> Command {
    let mut command = process::cargo(&["test", "--all-features"]);
    if !names_packages(options.of_cargo()) {
        command.arg("--workspace");
    }
    command
}

impl Options {
    /// What is for cargo, and not for the tests that it runs.
    fn of_cargo(&self) -> &[String] {
        self.cargo.split(|argument| argument == "--").next().unwrap_or_default()
    }
}

fn names_packages(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument.starts_with("-p") || argument.starts_with("--package"))
}
