//! Lock files: what excludes, what happens to a lock that is lost, and where none can be had.

use std::fs;
use std::process::Command;

use outbox_core::{Settlement, StoreErrorKind, StoreOperation};

use crate::chain;
use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, Open, claim, ids, tenant, try_claim};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn two_holders_never_both_verify_after_somebody_deleted_the_lock_file(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 2).await;
    let (store, other) = (database.store(), database.store());
    let mut first = claim(&store, &acme).await;
    first.claim.verify().await.expect("the claim lives");
    let [file] = database.lock_files().try_into().expect("one lock file");
    fs::remove_file(file).expect("somebody deletes it");
    let lost = first.claim.verify().await.expect_err("nothing excludes others any more");
    assert_eq!(lost.operation(), StoreOperation::Verify);
    assert!(chain(&lost).contains("deleted or replaced"), "{}", chain(&lost));

    let mut second = claim(&other, &acme).await;
    second.claim.verify().await.expect("the second claim lives");
    first.claim.verify().await.expect_err("a lost claim stays lost");
    let late = first.claim.settle(Settlement::published(written.clone())).await;
    assert_eq!(late.expect_err("a lost claim cannot mark").operation(), StoreOperation::Settle);
    assert_eq!(database.marked().await, 0);
    second.claim.settle(Settlement::published(written)).await.expect("the holder marks");
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_lock_file_stays_when_its_claim_ends(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let store = database.store();
    for _ in 0..3 {
        drop(claim(&store, &tenant("acme")).await);
        claim(&store, &tenant("globex")).await.claim.settle(Settlement::release()).await.expect("given back");
    }
    assert_eq!(database.lock_files().len(), 2, "one for each tenant, used again");
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_child_process_that_was_started_while_a_tenant_was_held_does_not_keep_it(
    driver: Driver,
) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    database.commit(&acme, 1).await;
    let (store, other) = (database.store(), database.store());
    let claimed = claim(&store, &acme).await;
    let mut child = Command::new("sleep").arg("60").spawn().expect("a child process");
    drop(claimed);
    let again = try_claim(&other, &acme).await.expect("a claim");
    child.kill().and_then(|()| child.wait()).expect("the child ends");
    assert!(again.is_some(), "the child keeps the tenant");
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn every_way_to_name_a_database_comes_to_the_same_lock(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let link = database.directory.path().join("link.db");
    #[cfg(unix)]
    std::os::unix::fs::symlink(database.path(), &link).expect("a link");
    let roundabout = database.directory.path().join(".").join("app.db");
    let held = claim(&database.store(), &acme).await;
    for path in [link, roundabout] {
        let store = database.store_as(&Open::named(path.display().to_string()));
        assert!(try_claim(&store, &acme).await.expect("a claim").is_none(), "{}", path.display());
    }
    drop(held);
}

/// SQLite has no case in its names: `Outbox_Message` is the same table, and so must be the lock.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_table_named_in_other_letters_is_the_same_table(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 1).await;
    let shouting = outbox_sql::OutboxTable::new("OUTBOX_MESSAGE").with_schema("Main");
    let other = driver.store(&database.open(), shouting);
    let held = claim(&database.store(), &acme).await;
    assert!(try_claim(&other, &acme).await.expect("a claim").is_none());
    drop(held);
    assert_eq!(ids(&claim(&other, &acme).await), written);
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_lock_file_that_cannot_be_made_is_an_error_that_says_so(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let store = database.store();
    drop(claim(&store, &acme).await);
    let [file] = database.lock_files().try_into().expect("one lock file");
    fs::remove_file(&file).expect("removed");
    fs::create_dir(&file).expect("a directory in its place");
    let error = try_claim(&store, &acme).await.expect_err("no lock can be had");
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(chain(&error).contains(&file.display().to_string()), "{}", chain(&error));
    claim(&store, &globex).await;
}
