//! What must hold of the code before a test runs; warnings are errors.

mod alone;
mod dependencies;
mod features;
mod tidy;

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::{interrupt, process};

type Step = (&'static str, fn() -> Result<()>);

const STEPS: [Step; 7] = [
    ("format", format),
    ("tidy", tidy::run),
    ("clippy", clippy),
    ("docs", docs),
    ("each feature", features::run),
    ("dependencies", dependencies::run),
    ("outbox-diesel alone", alone::run),
];

/// Runs every step, also after one that found something; answers whether all are well.
pub(crate) fn run() -> Result<bool> {
    let mut found = Vec::new();
    for (name, step) in STEPS {
        eprintln!("xtask: lint: {name}");
        let begin = Instant::now();
        if let Err(error) = step() {
            if interrupt::is_interrupted() {
                return Err(error);
            }
            eprintln!("xtask: lint: {name}: {error:#}");
            found.push(name);
        }
        eprintln!("xtask: lint: {name}: {:.1} s", begin.elapsed().as_secs_f64());
    }
    if found.is_empty() {
        println!("lint: all {} steps are well", STEPS.len());
    } else {
        println!("lint: something to do in: {}", found.join(", "));
    }
    Ok(found.is_empty())
}

fn must(command: &mut Command) -> Result<()> {
    let status = process::run(command)?;
    ensure!(status.success(), "ended with {status}");
    Ok(())
}

fn format() -> Result<()> {
    must(&mut process::cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "--deny=warnings"];
    must(&mut process::cargo(&arguments))
}

fn docs() -> Result<()> {
    let mut command = process::cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    must(command.env("RUSTDOCFLAGS", "--deny=warnings"))
}
