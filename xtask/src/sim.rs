//! The command `sim`: its options; the program that simulates is a package of its own.

use anyhow::Result;

use crate::process;

/// Runs the relay in simulated worlds, one for each seed, and judges every promise after each step.
///
/// Built with optimisations. The first world in which a promise is broken tells its story; `--seed` tells it again.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// How many worlds. Default: 10,000.
    #[arg(long, value_name = "NUMBER")]
    seeds: Option<u64>,
    /// How many steps a world has before nothing goes wrong any more. Default: 300.
    #[arg(long, value_name = "NUMBER")]
    steps: Option<usize>,
    /// The seed of the first world. Default: 0.
    #[arg(long, value_name = "SEED")]
    from: Option<u64>,
    /// Runs the world of this seed alone, and tells its story.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
}

/// Builds the simulation and runs it; answers whether every promise was kept.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut command = process::cargo(&["run", "--quiet", "--profile", "sim", "--package", "sim", "--"]);
    let steps = options.steps.map(|steps| steps as u64);
    let given =
        [("--seeds", options.seeds), ("--steps", steps), ("--from", options.from), ("--seed", options.seed)];
    for (name, value) in given {
        command.args(value.map(|value| format!("{name}={value}")));
    }
    Ok(process::run(&mut command)?.success())
}
