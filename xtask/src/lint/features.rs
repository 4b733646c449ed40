//! Each crate builds without warnings with no feature, and with each of its features alone.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process;

pub(super) fn run() -> Result<()> {
    let metadata = process::output(&mut process::cargo(&["metadata", "--format-version=1", "--no-deps"]))?;
    let mut failed = Vec::new();
    for (package, features) in packages(&metadata)? {
        for feature in std::iter::once(None).chain(features.iter().map(Some)) {
            let what =
                feature.map_or(format!("{package} without features"), |f| format!("{package} with {f}"));
            let mut command = process::cargo(&["clippy", "--quiet", "--no-default-features", "-p", &package]);
            if let Some(feature) = feature {
                command.args(["--features", feature]);
            }
            eprintln!("xtask: lint: {what}");
            if !process::run(command.args(["--", "--deny=warnings"]))?.success() {
                failed.push(what);
            }
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join(", "));
    Ok(())
}

/// Each package of the workspace with its features.
fn packages(metadata: &str) -> Result<Vec<(String, Vec<String>)>> {
    let metadata: Value = serde_json::from_str(metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let packages = packages.iter().map(|package| {
        let name = package["name"].as_str().context("a package has no name")?;
        let features = package["features"].as_object().context("a package has no features")?;
        let features = features.keys().filter(|feature| *feature != "default").cloned().collect();
        Ok((name.to_owned(), features))
    });
    packages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every feature is tried but the default set, which is not one of its own.
    #[test]
    fn reads_each_feature_but_the_default() {
        let metadata = r#"{"packages": [{"name": "a", "features": {"default": ["x"], "x": [], "y": []}}]}"#;
        assert_eq!(packages(metadata).unwrap(), [("a".to_owned(), vec!["x".to_owned(), "y".to_owned()])]);
    }
}
