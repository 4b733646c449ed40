//! What CI runs.

use anyhow::Result;

use crate::{lint, sim, test};

/// Lints, then simulates ten thousand worlds, then tests, even where what came before found something. Answers whether
/// all is well.
pub(crate) fn run() -> Result<bool> {
    let lint = lint::run()?;
    let sim = sim::run(&sim::Options::default())?;
    let test = test::run(&test::Options::default())?;
    Ok(lint && sim && test)
}
