//! The command `bench`: its options; the program that measures is a package of its own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, programs};

/// Measures the relay: how fast, how soon, how cheap, and what that is compared with.
///
/// Built in release mode, on private servers. Every run is checked: each row published once, in order, and marked.
/// Prints the tables with their goals, and writes bench.md, bench.json and bench.svg.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Everything small: it takes less than three minutes, and says little about a real load.
    #[arg(long)]
    quick: bool,
    /// Runs these parts only, separated by commas; all of them by default.
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<String>,
    /// Where to write the numbers and the picture. Default: `bench` in cargo's target folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Builds the bench and its counting program, and runs it; answers whether every goal was met.
pub(crate) fn run(options: &Options) -> Result<bool> {
    eprintln!("xtask: building in release mode");
    let mut build = process::cargo(&["build", "--quiet", "--release", "--package", "bench"]);
    let Some(programs) = programs::build(&mut build)? else { return Ok(false) };
    let program = programs.iter().find(|program| program.file() == "bench");
    let mut measure = Command::new(&program.context("cargo built no bench")?.path);
    measure.arg("measure");
    if options.quick {
        measure.arg("--quick");
    }
    if !options.only.is_empty() {
        measure.args(["--only", &options.only.join(",")]);
    }
    if let Some(out) = &options.out {
        measure.arg("--out").arg(out);
    }
    Ok(process::run(&mut measure)?.success())
}
