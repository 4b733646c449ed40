//! Runs worlds, and tells the story of the first in which a promise was broken.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

/// Simulates the relay: one world for each seed.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim")]
struct Options {
    /// How many worlds.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// How many steps a world has before nothing goes wrong any more.
    #[arg(long, default_value_t = 300)]
    steps: usize,
    /// The seed of the first world.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Runs the world of this seed alone, and tells its story.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(seed) = options.seed {
        return tell(seed, options.steps);
    }
    let began = Instant::now();
    let found = sim::many(options.from..options.from + options.seeds, options.steps);
    println!(
        "sim: {} worlds, {} steps, {} messages published and marked, in {:.1} s",
        found.worlds,
        found.steps,
        found.marked,
        began.elapsed().as_secs_f64()
    );
    match found.broken {
        None => ExitCode::SUCCESS,
        Some((seed, _)) => {
            let code = tell(seed, options.steps);
            println!("sim: again: cargo xtask sim --steps {} --seed {seed}", options.steps);
            code
        }
    }
}

/// Tells the story of a world.
fn tell(seed: u64, steps: usize) -> ExitCode {
    let verdict = sim::run(seed, steps, true);
    verdict.story.iter().for_each(|line| println!("{line}"));
    match verdict.broken {
        None => {
            println!("sim: every promise was kept in the world of seed {seed}");
            ExitCode::SUCCESS
        }
        Some(broken) => {
            println!("sim: seed {seed} breaks a promise: {}: {}", broken.promise, broken.how);
            ExitCode::FAILURE
        }
    }
}
