//! How many public items each crate has. A new one is a decision: the number is written down.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::minimal::published;
use crate::process;

/// The crates and their numbers, from the workspace's root.
const WRITTEN: &str = "xtask/public-items.txt";

pub(super) fn run() -> Result<()> {
    let count = |package: String| {
        let page = process::target()?.join("doc").join(package.replace('-', "_")).join("all.html");
        let page =
            fs::read_to_string(&page).with_context(|| format!("no {}: is it documented?", page.display()))?;
        anyhow::Ok(format!("{package} {}\n", items(&page)))
    };
    let counted: String = published()?.into_iter().map(count).collect::<Result<_>>()?;
    eprint!("{counted}");
    let written =
        fs::read_to_string(process::root().join(WRITTEN)).with_context(|| format!("no {WRITTEN}"))?;
    ensure!(
        counted == written,
        "{WRITTEN} has other numbers; if they are meant to change, it is to say:\n{counted}"
    );
    Ok(())
}

/// How many items the page of all items lists.
fn items(page: &str) -> usize {
    page.matches("<li><a href=\"").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each item of the list counts, and no other link.
    #[test]
    fn counts_the_items_of_the_page() {
        let page = r#"<a href="index.html">x</a><ul><li><a href="struct.A.html">A</a></li><li><a href="fn.b.html">b</a></li></ul>"#;
        assert_eq!(items(page), 2);
    }
}
