//! Each crate names the oldest Rust that it builds with. Only the toolchain that is here can be built with: what is
//! checked is that nothing which a crate depends on asks for a newer one, and (by clippy, which reads the same line) that
//! the standard library is not used beyond it. New syntax would not be found.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process;

/// A version of Rust, as 1.89.0.
type Rust = [u32; 3];

pub(super) fn run() -> Result<()> {
    let metadata = process::output(&mut process::cargo(&["metadata", "--format-version=1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = packages(&metadata)?;
    let mut problems = Vec::new();
    for id in metadata["workspace_members"].as_array().into_iter().flatten() {
        let (name, own) =
            packages.get(id.as_str().unwrap_or_default()).context("a crate is not in its workspace")?;
        let Some(own) = own else {
            problems.push(format!("{name} does not say for which Rust it is: rust-version"));
            continue;
        };
        let mut tree = process::cargo(&["tree", "--all-features", "--edges=normal,build", "--prefix=none"]);
        let tree = process::output(tree.args([
            "--format={p}",
            "--package",
            name.split(' ').next().unwrap_or(name),
        ]))?;
        problems.extend(newer(name, *own, &tree, packages.values()));
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// Each package with its version, as `anyhow v1.0.0`, and the Rust that it asks for; by its id.
fn packages(metadata: &Value) -> Result<BTreeMap<String, (String, Option<Rust>)>> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let packages = packages.iter().map(|package| {
        let text =
            |field: &str| package[field].as_str().with_context(|| format!("a package without {field}"));
        let rust = package["rust_version"].as_str().map(rust);
        Ok((text("id")?.to_owned(), (format!("{} v{}", text("name")?, text("version")?), rust)))
    });
    packages.collect()
}

fn rust(text: &str) -> Rust {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

/// What in a crate's tree asks for a newer Rust than the crate.
fn newer<'a>(
    name: &str,
    own: Rust,
    tree: &str,
    packages: impl Iterator<Item = &'a (String, Option<Rust>)>,
) -> Vec<String> {
    let is_in_tree = |package: &str| {
        tree.lines().any(|line| {
            line.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    };
    let newer = packages.filter_map(|(package, rust)| Some((package, (*rust)?)));
    let newer = newer.filter(|(package, rust)| *rust > own && is_in_tree(package));
    newer
        .map(|(package, [major, minor, _])| format!("{name}: {package} asks for Rust {major}.{minor}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dependency for a newer Rust is found, and only where it is in the tree.
    #[test]
    fn finds_what_asks_for_a_newer_rust() {
        let packages = [("a v1.0.0".to_owned(), Some([1, 90, 0])), ("b v1.0.0".to_owned(), None)];
        let found = |own, tree| newer("x", own, tree, packages.iter());
        assert_eq!(
            found([1, 89, 0], "x v0.1.0 (/x)\na v1.0.0 (*)\nb v1.0.0"),
            ["x: a v1.0.0 asks for Rust 1.90"]
        );
        assert!(found([1, 90, 0], "a v1.0.0").is_empty());
        assert!(found([1, 89, 0], "aa v1.0.0\na v1.0.01").is_empty());
        assert_eq!(rust("1.89"), [1, 89, 0]);
    }
}
