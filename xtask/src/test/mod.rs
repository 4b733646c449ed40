//! Every test there is, on servers of our own.

mod report;
mod shared;
mod tally;

use std::process::Command;

use anyhow::Result;
use servers::install::Program;
use servers::{Folder, MariaDb, MySql, Postgres};

use self::report::Report;
use self::shared::Shared;
use self::tally::Tally;
use crate::{interrupt, process, programs};

/// The file in which tests write what they could not check.
const REPORT: &str = "OUTBOX_TEST_REPORT";

/// Runs every test, with a private PostgreSQL server (or the one that `OUTBOX_TEST_POSTGRES_URL` names, as
/// its superuser) and a private MariaDB server (or the MariaDB or MySQL that `OUTBOX_TEST_MYSQL_URL` names, as
/// its `root`). Without arguments, the tests of MariaDB run again on a private MySQL server, where one can be
/// fetched. The last lines count what ran on which database, and what could not be checked.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Passed on to `cargo test`: `-p outbox-sqlx`, a test's name, `-- --nocapture`.
    #[arg(last = true)]
    cargo: Vec<String>,
    /// A private MySQL server in place of MariaDB's, for the tests that share one.
    #[arg(long)]
    mysql: bool,
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
    let mut build = test_command(options);
    build.arg("--no-run").args(options.of_cargo());
    let Some(binaries) = programs::build(&mut build)? else {
        println!("no test ran: the tests do not build");
        return Ok(false);
    };

    let mut command = test_command(options);
    command.arg("--no-fail-fast").args(&options.cargo).env(REPORT, &file);
    let postgres = Shared::<Postgres>::for_tests(&mut command)?;
    let has_mysql_tests = binaries.iter().any(|binary| binary.file().starts_with("mysql-"));
    let mut tally = Tally::of(binaries);
    let mut status = if options.mysql {
        Program::MySql.ensure()?;
        Shared::<MySql>::for_tests(&mut command)?.run(&mut command, &mut tally)?
    } else {
        Shared::<MariaDb>::for_tests(&mut command)?.run(&mut command, &mut tally)?
    };
    if !status {
        postgres.show_log();
    }
    drop(postgres);
    // Without arguments everything runs, so that a database without a test is a mistake of ours.
    let everything = status && options.cargo.is_empty() && !options.mysql;
    let missing = if everything { tally.databases_without_a_test() } else { Vec::new() };
    let mut again = None;
    if everything && has_mysql_tests && !Shared::<MySql>::is_given() {
        let mut command =
            process::cargo(&["test", "--all-features", "--package=outbox-sqlx", "--test=mysql"]);
        command.arg("--no-fail-fast").env(REPORT, &file);
        again = Some(on_mysql(&mut command)?);
        status &= again.as_ref().is_some_and(|(well, _)| *well);
    }

    let report = Report::read(&std::fs::read_to_string(&file)?);
    for line in report.unchecked() {
        println!("{line}");
    }
    for database in &missing {
        println!("no test ran on {database}");
    }
    if let Some((_, line)) = again {
        println!("{line}");
    }
    println!("{tally}; {report}");
    Ok(status && missing.is_empty())
}

/// Runs tests on a MySQL server; answers whether all are well, and what to say of them. That no server can be had is
/// said, and is no failure: it comes from where nothing is promised to be there.
fn on_mysql(command: &mut Command) -> Result<(bool, String)> {
    match Program::MySql.ensure().and_then(|()| Shared::<MySql>::for_tests(command)) {
        Ok(server) => {
            let mut tally = Tally::default();
            let well = server.run(command, &mut tally)?;
            let version = server.server().map_or("", MySql::version);
            Ok((well, format!("once more, on MySQL {version}: {tally}")))
        }
        Err(error) => Ok((true, format!("no test ran on MySQL: {error:#}"))),
    }
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
