//! The pages about the suite say what the suite is.

use outbox_testkit::conformance::{Law, laws};

/// Every law of the suite is in `docs/contract.md`, under its group and in its place, and every law there is
/// in the suite.
#[test]
fn the_contract_lists_the_laws_of_the_suite() {
    let contract = include_str!("../../../docs/contract.md");
    let mut group = String::new();
    let mut listed = Vec::new();
    for line in contract.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            group = heading.to_lowercase();
        } else if let Some((law, _)) = line.strip_prefix("- **`").and_then(|rest| rest.split_once("`**: ")) {
            listed.push((group.clone(), law.to_owned()));
        }
    }
    let suite = laws().into_iter().map(|(Law { group, name, .. }, _)| (group.to_owned(), name.to_owned()));
    assert_eq!(listed, suite.collect::<Vec<_>>());
}

/// The code of `docs/write-a-store.md` is the store that the suite runs on in `write_a_store.rs`.
#[test]
fn the_page_on_writing_a_store_shows_what_runs() {
    let page = include_str!("../../../docs/write-a-store.md");
    let blocks: Vec<_> =
        page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.join("\n"), include_str!("write_a_store.rs"));
}
