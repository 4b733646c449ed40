//! A link to a database that somebody turns to another one: open connections have the one, new ones open the other.

use std::os::unix::fs::symlink;
use std::path::Path;

use outbox_core::{MessageId, ProbeRequest, Settlement, Store as _, Tenants};

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, Open, claim, execute, tenant, try_claim};

fn turn(link: &Path, to: &Path) {
    let new = link.with_extension("new");
    symlink(to, &new).expect("a link");
    std::fs::rename(new, link).expect("in the place of the old one");
}

/// Promise: a row is marked only after it was published, by whatever name the database is opened.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_link_turned_to_another_database_marks_nothing_there(driver: Driver) {
    let (old, new) = (FileDatabase::new(driver).await, FileDatabase::new(driver).await);
    let acme = tenant("acme");
    let written = old.commit(&acme, 1).await;
    let row =
        "INSERT INTO outbox_message (tenant_id, kind, subject_id, occurred_at) VALUES ('acme', 'k', 's', 7)";
    execute(&new, row).await;
    let link = old.directory.path().join("link.db");
    turn(&link, &old.path());
    let store = driver.store(&Open::named(link.display().to_string()), old.table.clone());
    let claimed = claim(&store, &acme).await;
    turn(&link, &new.path());
    let error = claimed.claim.settle(Settlement::published(written)).await.expect_err("which database?");
    assert!(
        error.to_string().contains("link.db") && error.to_string().contains("reopen the pool"),
        "{error}"
    );
    store.probe(&ProbeRequest::new(Tenants::Discovered)).await.expect_err("which database?");
    try_claim(&store, &acme).await.expect_err("which database?");
    assert_eq!(new.pending().await, [MessageId::new(1)]);
    turn(&link, &old.path());
    assert_eq!(claim(&store, &acme).await.messages.len(), 1, "turned back");
}
