//! What CI runs.

use anyhow::Result;

use crate::{lint, test};

/// Lints, then tests, even where the lint found something. Answers whether both are well.
pub(crate) fn run() -> Result<bool> {
    let lint = lint::run()?;
    let test = test::run(&test::Options::default())?;
    Ok(lint && test)
}
