//! What must hold of the code before a test runs; warnings are errors.

mod alone;
mod dependencies;
mod features;
mod minimal;
mod oldest;
mod public;
mod supply;
mod tidy;

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::{Verdict, interrupt, process};

/// What it is called, and what it does: it answers what it could not check here.
type Step = (&'static str, fn() -> Result<Option<String>>);

const STEPS: [Step; 12] = [
    ("format", || format().map(all)),
    ("tidy", || tidy::run().map(all)),
    ("unused dependencies", || supply::unused().map(all)),
    ("licences, sources, advisories", supply::deny),
    ("oldest Rust", || oldest::run().map(all)),
    ("clippy", || clippy().map(all)),
    ("docs", || docs().map(all)),
    // After the docs, which it reads.
    ("public items", || public::run().map(all)),
    ("each feature", || features::run().map(all)),
    ("dependencies", || dependencies::run().map(all)),
    ("minimal versions", || minimal::run().map(all)),
    ("outbox-diesel alone", || alone::run().map(all)),
];

/// What a step says that has checked all.
fn all((): ()) -> Option<String> {
    None
}

/// Format, tidiness, clippy, docs, the public items, each feature alone, outbox-diesel by itself, and of the dependencies:
/// none unused, none unasked for, their licences, sources and advisories, their oldest versions, and the oldest Rust;
/// warnings are errors.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// These steps only, as `docs` or `"oldest Rust"`. Default: all.
    #[arg(value_name = "STEP", value_parser = STEPS.map(|(name, _)| name))]
    only: Vec<String>,
}

/// Runs every step, also after one that found something; answers whether all are well, and what to say last.
pub(crate) fn run(options: &Options) -> Result<Verdict> {
    let (mut found, mut unchecked) = (Vec::new(), Vec::new());
    let is_chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let steps: Vec<_> = STEPS.into_iter().filter(|(name, _)| is_chosen(name)).collect();
    for (name, step) in &steps {
        eprintln!("xtask: lint: {name}");
        let begin = Instant::now();
        match step() {
            Ok(left) => unchecked.extend(left),
            Err(error) if interrupt::is_interrupted() => return Err(error),
            Err(error) => {
                eprintln!("xtask: lint: {name}: {error:#}");
                found.push(*name);
            }
        }
        eprintln!("xtask: lint: {name}: {:.1} s", begin.elapsed().as_secs_f64());
    }
    let mut last = vec![if found.is_empty() {
        format!("lint: all {} steps are well", steps.len())
    } else {
        format!("lint: something to do in: {}", found.join(", "))
    }];
    last.extend(unchecked.into_iter().map(|what| format!("NOT CHECKED: {what}")));
    Ok(Verdict { well: found.is_empty(), last: last.join("; ") })
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
