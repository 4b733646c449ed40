//! The workspace's commands: `cargo xtask --help`.

mod ci;
#[cfg(feature = "demo")]
mod demo;
mod interrupt;
mod lint;
mod measure;
mod process;
mod test;

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
    #[cfg(feature = "demo")]
    Demo(demo::Options),
    /// One of the demo's replica processes.
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    DemoReplica(demo::ReplicaOptions),
    Bench(measure::Options),
    /// One of the bench's writer processes.
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchWriter {
        /// What to write.
        order: String,
    },
    Test(test::Options),
    /// Format, clippy, docs, each feature alone, dependencies, tidiness and outbox-diesel by itself; warnings are errors.
    Lint,
    /// All that CI runs: lint, then test.
    Ci,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        #[cfg(feature = "demo")]
        Command::Demo(options) => demo::run(options),
        #[cfg(feature = "demo")]
        Command::DemoReplica(options) => demo::run_replica(&options),
        Command::Bench(options) => measure::run(&options),
        #[cfg(feature = "bench")]
        Command::BenchWriter { order } => xtask::bench::write(&order),
        Command::Test(options) => test::run(&options),
        Command::Lint => lint::run(),
        Command::Ci => ci::run(),
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
