//! The published crates build with the oldest versions that they say they can be built with.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

pub(super) fn run() -> Result<()> {
    // Another lock file needs another workspace: the same files, seen from another folder.
    let folder = process::target()?.join("minimal");
    let workspace = folder.join("workspace");
    let _ = fs::remove_dir_all(&workspace);
    fs::create_dir_all(&workspace)?;
    for name in ["crates", "xtask", "README.md"] {
        symlink(process::root().join(name), workspace.join(name))?;
    }
    fs::copy(process::root().join("Cargo.toml"), workspace.join("Cargo.toml"))?;

    let mut lock = process::cargo(&["generate-lockfile", "--quiet", "-Zdirect-minimal-versions"]);
    // The option is one of an unstable cargo; what it writes is not.
    super::must(lock.current_dir(&workspace).env("RUSTC_BOOTSTRAP", "1"))?;
    let mut check = process::cargo(&["check", "--quiet", "--lib", "--all-features"]);
    for package in published()? {
        check.args(["--package", &package]);
    }
    super::must(check.current_dir(&workspace).env("CARGO_TARGET_DIR", folder.join("target")))
}

/// The crates that are meant to be published.
pub(super) fn published() -> Result<Vec<String>> {
    let metadata = process::output(&mut process::cargo(&["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    // `publish` is an empty list where it is forbidden.
    let published = packages.iter().filter(|package| package["publish"].is_null());
    Ok(published.filter_map(|package| Some(package["name"].as_str()?.to_owned())).collect())
}
