//! Which crate each test binary belongs to: what cargo shows while it runs them does not say.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

/// The crate of each test binary, by the name of the binary's file.
#[derive(Debug, Default)]
pub(super) struct Binaries(BTreeMap<String, String>);

impl Binaries {
    /// Reads one of cargo's messages; most are about something else.
    pub(super) fn see(&mut self, message: &str) -> Result<()> {
        let message: Value = serde_json::from_str(message)?;
        if let (Some(executable), Some(package)) =
            (message["executable"].as_str(), message["manifest_path"].as_str())
        {
            let file = executable.rsplit('/').next().unwrap_or_default();
            let package = package.trim_end_matches("/Cargo.toml").rsplit('/').next().unwrap_or_default();
            self.0.insert(file.to_owned(), package.to_owned());
        }
        Ok(())
    }

    /// The crate of a binary.
    pub(super) fn package(&self, file: &str) -> &str {
        self.0.get(file).map_or("", String::as_str)
    }

    /// Whether there is a test binary whose name begins like this.
    pub(super) fn has_a_test_named(&self, begin: &str) -> bool {
        self.0.keys().any(|file| file.starts_with(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test binary is known by its file; a message about a library is none.
    #[test]
    fn knows_each_binary_by_its_file() {
        let mut binaries = Binaries::default();
        binaries
            .see(r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","executable":null}"#)
            .unwrap();
        binaries
            .see(r#"{"manifest_path":"/w/outbox-memory/Cargo.toml","executable":"/t/deps/conformance-1a"}"#)
            .unwrap();
        assert_eq!(binaries.package("conformance-1a"), "outbox-memory");
        assert_eq!(binaries.package("a-1a"), "");
        assert!(binaries.has_a_test_named("conf") && !binaries.has_a_test_named("mysql_"));
    }
}
