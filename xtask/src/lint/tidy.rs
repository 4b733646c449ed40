//! What no other tool looks at: the size of files, what must not be left in them, and the README's promises.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::process;

/// A file over this is listed: is it still one subject?
const LONG: usize = 300;
/// A file over this is an error.
const TOO_LONG: usize = 350;
/// Written in two parts, so that this file passes its own test.
const FORBIDDEN: [&str; 3] = [concat!("todo", "!("), concat!("dbg", "!("), concat!("unimplemented", "!(")];

pub(super) fn run() -> Result<()> {
    let root = process::root();
    let mut problems = Vec::new();
    for file in rust_files(&[root.join("crates"), root.join("xtask")])? {
        let text = fs::read_to_string(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).display();
        let lines = text.lines().count();
        if lines > LONG && lines <= TOO_LONG {
            eprintln!("xtask: lint: {name} has {lines} lines");
        }
        problems.extend(in_source(&text).into_iter().map(|problem| format!("{name} {problem}")));
    }
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("no {path}"));
    problems.extend(in_readme(&read("README.md")?, &read(".ci/run")?));
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

fn in_source(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > TOO_LONG {
        problems.push(format!("has {lines} lines, more than {TOO_LONG}"));
    }
    for word in FORBIDDEN {
        problems.extend(text.contains(word).then(|| format!("has {word}…)")));
    }
    problems
}

/// The README has a worked example that is compiled, and the two commands; CI runs what `cargo xtask ci` does.
fn in_readme(readme: &str, ci: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: &str| {
        if !holds {
            problems.push(problem.to_owned());
        }
    };
    must(readme.lines().any(is_compiled), "README.md has no example that is compiled and run (```rust)");
    must(readme.contains("cargo xtask demo"), "README.md does not name `cargo xtask demo`");
    must(readme.contains("cargo xtask test"), "README.md does not name `cargo xtask test`");
    must(ci.contains("cargo xtask ci"), ".ci/run does not run `cargo xtask ci`");
    problems
}

fn is_compiled(line: &str) -> bool {
    line.strip_prefix("```rust").is_some_and(|rest| !rest.contains("ignore") && !rest.contains("no_run"))
}

fn rust_files(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = folders.to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension() == Some("rs".as_ref()) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is too long and a macro that was left in are each found.
    #[test]
    fn finds_long_files_and_leftovers() {
        assert!(in_source(&"x\n".repeat(TOO_LONG)).is_empty());
        assert_eq!(in_source(&"x\n".repeat(TOO_LONG + 1)).len(), 1);
        for word in FORBIDDEN {
            assert_eq!(in_source(&format!("let x = {word}1);")).len(), 1, "{word}");
        }
    }

    /// A README without its example or a command, and a CI that runs something else, are found.
    #[test]
    fn finds_broken_promises_of_the_readme() {
        let readme = "cargo xtask demo\ncargo xtask test\n```rust\n```";
        assert!(in_readme(readme, "cargo xtask ci").is_empty());
        assert_eq!(in_readme(&readme.replace("```rust", "```rust,ignore"), "cargo xtask ci").len(), 1);
        assert_eq!(in_readme("", "").len(), 4);
    }

    /// Files are found in every folder, and only Rust's.
    #[test]
    fn finds_files_at_any_depth() {
        let files = rust_files(&[process::root().join("xtask")]).unwrap();
        assert!(files.iter().any(|file| file.ends_with("src/lint/tidy.rs")), "{files:?}");
        assert!(files.iter().all(|file| file.extension() == Some("rs".as_ref())));
    }
}
