//! Programs that cargo builds, test binaries among them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use crate::process;

/// A program that cargo has built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The folder of the crate that it belongs to.
    pub(crate) folder: PathBuf,
    /// What it is called in the crate's manifest, or for a test of its file's name.
    pub(crate) name: String,
    /// The file that it is built from.
    pub(crate) source: PathBuf,
    /// Whether it runs tests.
    pub(crate) is_test: bool,
}

impl Program {
    /// Reads one of cargo's messages; most are about something else.
    fn read(message: &str) -> Result<Option<Self>> {
        let message: Value = serde_json::from_str(message)?;
        let target = &message["target"];
        let (path, manifest) = (message["executable"].as_str(), message["manifest_path"].as_str());
        Ok(path.zip(manifest).map(|(path, manifest)| Self {
            path: path.into(),
            folder: Path::new(manifest).parent().unwrap_or(Path::new("")).into(),
            name: target["name"].as_str().unwrap_or_default().to_owned(),
            source: target["src_path"].as_str().unwrap_or_default().into(),
            is_test: message["profile"]["test"] == true,
        }))
    }

    /// The name of its file, which has a hash in it if it is a test binary.
    pub(crate) fn file(&self) -> &str {
        name(&self.path)
    }

    /// The crate that it belongs to.
    pub(crate) fn package(&self) -> &str {
        name(&self.folder)
    }
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Runs a command of cargo that builds, and answers what programs it built; `None` if it fails, which cargo has told.
pub(crate) fn build(command: &mut Command) -> Result<Option<Vec<Program>>> {
    let mut programs = Vec::new();
    let status = process::run_captured(command.arg("--message-format=json-render-diagnostics"), |message| {
        programs.extend(Program::read(message)?);
        Ok(())
    })?;
    Ok(status.success().then_some(programs))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program is known by its file and its crate; a message about a library is none.
    #[test]
    fn knows_each_program_by_its_file() {
        let library = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","executable":null}"#;
        assert_eq!(Program::read(library).unwrap(), None);
        let message = r#"{
            "manifest_path": "/w/outbox-memory/Cargo.toml", "executable": "/t/deps/conformance-1a",
            "target": { "name": "conformance", "src_path": "/w/outbox-memory/tests/conformance.rs" },
            "profile": { "test": true }
        }"#;
        let program = Program::read(message).unwrap().unwrap();
        assert_eq!((program.file(), program.package()), ("conformance-1a", "outbox-memory"));
        assert!(program.is_test && program.name == "conformance");
    }
}
