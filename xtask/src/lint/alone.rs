//! `outbox-diesel` as a user gets it: packaged, unpacked outside of this workspace, built without any other crate of
//! ours than it names, with SQLite built from source, and run.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process;

/// All of ours that it is made of.
const CRATES: [&str; 3] = ["outbox-core", "outbox-sql", "outbox-diesel"];

const PROGRAM: &str = r#"
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, SqliteConnection};
use outbox_core::{NewMessage, TenantId};
use outbox_diesel::OutboxTable;
use outbox_diesel::sqlite::SqliteTable;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = SqliteTable::new(OutboxTable::default())?;
    let mut connection = SqliteConnection::establish(":memory:")?;
    connection.batch_execute(&table.ddl())?;
    let message = NewMessage::new(TenantId::new("acme")?, "order.placed", "order-1", "{}");
    println!("appended {}", table.append(&message).execute(&mut connection)?);
    Ok(())
}
"#;

pub(super) fn run() -> Result<()> {
    let metadata = process::output(&mut process::cargo(&["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let target = process::target()?;

    let mut package =
        process::cargo(&["package", "--quiet", "--no-verify", "--allow-dirty", "--exclude-lockfile"]);
    process::output(package.args(CRATES.map(|name| format!("--package={name}"))))?;
    let folder = tempfile::tempdir()?;
    let app = folder.path().join("app");
    fs::create_dir_all(app.join("src"))?;
    let mut patches = Vec::new();
    for name in CRATES {
        let packed = format!("{name}-{}", version(&metadata, name)?);
        let archive = target.join("package").join(format!("{packed}.crate"));
        process::output(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()))?;
        patches.push(format!("{name} = {{ path = \"../{packed}\" }}"));
    }
    fs::write(app.join("Cargo.toml"), manifest(&version(&metadata, "outbox-diesel")?, &patches.join("\n")))?;
    fs::write(app.join("src/main.rs"), PROGRAM)?;
    // The versions that all else is tested with.
    fs::copy(process::root().join("Cargo.lock"), app.join("Cargo.lock"))?;

    // What it depends on is kept beside the workspace's own artifacts, so that SQLite is built once.
    let mut program = process::cargo(&["run", "--quiet", "--manifest-path"]);
    program.arg(app.join("Cargo.toml")).env("CARGO_TARGET_DIR", target.join("alone"));
    let said = process::output(&mut program)?;
    ensure!(said == "appended 1\n", "it built, and said {said:?}");
    Ok(())
}

fn version(metadata: &Value, name: &str) -> Result<String> {
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == name);
    let version = package.and_then(|package| package["version"].as_str());
    Ok(version.with_context(|| format!("cargo metadata does not know {name}"))?.to_owned())
}

fn manifest(version: &str, patches: &str) -> String {
    format!(
        r#"[package]
name = "alone"
edition = "2024"

[dependencies]
diesel = {{ version = "2.3", default-features = false, features = ["sqlite"] }}
outbox-core = "{version}"
outbox-diesel = {{ version = "{version}", features = ["sqlite-bundled"] }}

[patch.crates-io]
{patches}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions are read, and a crate that is not there is named.
    #[test]
    fn reads_the_version_of_a_crate() {
        let metadata = serde_json::json!({ "packages": [{ "name": "a", "version": "1.2.3" }] });
        assert_eq!(version(&metadata, "a").unwrap(), "1.2.3");
        assert!(version(&metadata, "b").unwrap_err().to_string().contains("know b"));
    }
}
