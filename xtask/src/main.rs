//! The workspace's commands: `cargo xtask --help`.

mod bench;
mod ci;
mod demo;
mod interrupt;
mod lint;
mod process;
mod programs;
mod sim;
mod test;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Everything that a developer or CI runs on this workspace.
///
/// Only the Rust toolchain is needed. Servers are private, in temporary folders, and always stopped; what is
/// missing for them is installed with apt-get as root on Debian, after saying so, and named elsewhere.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the relay at work: orders, two replicas, a refusal, a SIGKILL, and a check at the end.
    Demo(demo::Options),
    Bench(bench::Options),
    Sim(sim::Options),
    Test(test::Options),
    Lint(lint::Options),
    /// All that CI runs: lint, then the simulation, then test.
    Ci,
}

/// How lint or tests ended.
#[derive(Debug)]
struct Verdict {
    well: bool,
    /// The last line, which also says what was left out.
    last: String,
}

impl Verdict {
    /// Prints it; answers whether all is well.
    fn tell(self) -> bool {
        println!("{}", self.last);
        self.well
    }
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Sim(options) => sim::run(&options),
        Command::Test(options) => test::run(&options).map(Verdict::tell),
        Command::Lint(options) => lint::run(&options).map(Verdict::tell),
        Command::Ci => ci::run().map(Verdict::tell),
    };
    match result {
        Ok(_) if interrupt::is_interrupted() => ExitCode::from(130),
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
