//! What CI runs.

use anyhow::Result;

use crate::{Verdict, lint, sim, test};

/// Lints, then simulates ten thousand worlds, then tests, even where what came before found something. Answers whether
/// all is well.
pub(crate) fn run() -> Result<Verdict> {
    let lint = lint::run(&lint::Options::default())?;
    println!("{}", lint.last);
    let simulated = sim::run(&sim::Options::default())?;
    let test = test::run(&test::Options::default())?;
    Ok(Verdict { well: lint.well && simulated && test.well, last: format!("{}; {}", lint.last, test.last) })
}
