//! The command `bench`: its options, and the program that runs it.

use std::path::PathBuf;

use anyhow::Result;

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

/// What an `xtask` needs for it. Its counting program has the same, so that what both are made of is built once.
const FEATURE: &str = "bench-diesel";

/// Runs the bench in an `xtask` that can.
#[cfg(not(feature = "bench-diesel"))]
pub(crate) fn run(_: &Options) -> Result<bool> {
    let arguments = ["run", "--quiet", "--release", "--package", "xtask", "--features", FEATURE, "--"];
    let mut command = crate::process::cargo(&arguments);
    // As they were given, but for the program's own name: a folder is one of where we were called.
    command.args(std::env::args_os().skip(1)).env(FOLDER, std::env::current_dir()?);
    eprintln!("xtask: building in release mode");
    Ok(crate::process::run(&mut command)?.success())
}

/// The folder in which the command was typed.
const FOLDER: &str = "OUTBOX_BENCH_FOLDER";

/// Runs the bench.
#[cfg(feature = "bench-diesel")]
pub(crate) fn run(options: &Options) -> Result<bool> {
    use anyhow::Context;
    use xtask::bench::{Part, Settings};

    let part = |name: &String| {
        let names = || Part::ALL.map(Part::name).join(", ");
        let part = Part::ALL.into_iter().find(|part| part.name() == name);
        part.with_context(|| format!("there is no part {name}: the parts are {}", names()))
    };
    let parts = options.only.iter().map(part).collect::<Result<Vec<_>>>()?;
    let parts = if parts.is_empty() { Part::ALL.to_vec() } else { parts };
    let folder = std::env::var_os(FOLDER).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let out = match &options.out {
        Some(out) => folder.join(out),
        // Beside the folder with this program.
        None => std::env::current_exe()?
            .parent()
            .and_then(std::path::Path::parent)
            .context("this program is in no folder")?
            .join("bench"),
    };
    xtask::bench::run(&Settings { parts, quick: options.quick, out, counting })
}

/// The counters, from a program whose allocator counts.
#[cfg(feature = "bench-diesel")]
fn counting() -> Result<serde_json::Value> {
    let arguments = ["run", "--quiet", "--release", "--package", "xtask", "--features", FEATURE];
    let mut command = crate::process::cargo(&arguments);
    let text = crate::process::output(command.args(["--bin", "outbox-counters"]))?;
    Ok(serde_json::from_str(&text)?)
}
