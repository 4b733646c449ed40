//! The bench's program: what `cargo xtask bench` runs, and its writers.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use bench::{Part, Settings};
use clap::Parser as _;

/// What `cargo xtask bench` asks for.
#[derive(Debug, clap::Parser)]
enum Command {
    /// Measures.
    Measure {
        /// Everything small.
        #[arg(long)]
        quick: bool,
        /// These parts only.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Where to write the numbers and the picture. Default: `bench` beside the folder with this program.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Is a writer.
    #[command(hide = true)]
    Writer {
        /// What to write.
        order: String,
    },
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Measure { quick, only, out } => measure(quick, &only, out),
        Command::Writer { order } => bench::write(&order),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(quick: bool, only: &[String], out: Option<PathBuf>) -> Result<bool> {
    let part = |name: &String| {
        let names = || Part::ALL.map(Part::name).join(", ");
        let part = Part::ALL.into_iter().find(|part| part.name() == name);
        part.with_context(|| format!("there is no part {name}: the parts are {}", names()))
    };
    let parts = only.iter().map(part).collect::<Result<Vec<_>>>()?;
    let parts = if parts.is_empty() { Part::ALL.to_vec() } else { parts };
    let out = match out {
        Some(out) => out,
        None => std::env::current_exe()?
            .parent()
            .and_then(std::path::Path::parent)
            .context("this program is in no folder")?
            .join("bench"),
    };
    bench::run(&Settings { parts, quick, out })
}
