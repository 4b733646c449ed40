//! A database's file that somebody replaces: what is read, published and marked is of one file, or an error says
//! which file was replaced.

use std::num::NonZeroU32;
use std::pin::pin;
use std::time::Duration;

use outbox_core::{
    Claim, HealthCheck, MessageId, ProbeRequest, RelayConfig, Settlement, Settling, Store as _, StoreError,
    StoreErrorKind, Tenants,
};

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, Open, claim, errors, execute, tenant, try_claim};
use crate::{AnyStore, chain};

/// Copies a database of another history over this one, as a restore does that names it by its path: with a row 1 of
/// its own, which nobody published.
async fn restore_over(database: &FileDatabase) {
    let backup = FileDatabase::new(database.driver).await;
    let row = "INSERT INTO outbox_message (tenant_id, kind, subject_id, occurred_at) \
               VALUES ('acme', 'order.cancelled', 'order-7', 7)";
    execute(&backup, row).await;
    // The log of the old file has to go, or it would be played into the new one.
    for suffix in ["-wal", "-shm"] {
        let left = format!("{}{suffix}", database.path().display());
        let _ = std::fs::remove_file(left);
    }
    let path = backup.path();
    std::fs::rename(path, database.path()).expect("the directory is on the same file system");
}

fn store(database: &FileDatabase) -> AnyStore {
    database.store_as(&Open { connections: 2, ..database.open() })
}

fn assert_replaced(error: &StoreError, database: &FileDatabase) {
    assert_eq!(error.kind(), StoreErrorKind::Permanent, "{}", chain(error));
    let text = error.to_string();
    let path = database.path().canonicalize().expect("a path").display().to_string();
    assert!(text.contains(&path) && text.contains("reopen the pool"), "{text}");
}

async fn probe(store: &AnyStore) -> Result<usize, StoreError> {
    Ok(store.probe(&ProbeRequest::new(Tenants::Discovered)).await?.oldest.len())
}

/// Promise: a row is marked only after it was published. The mark runs on a new connection, which opens what has the
/// name by then.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_database_replaced_while_a_message_is_published_keeps_its_own_row_pending(
    driver: Driver,
) {
    for settling in [Settling::Mark, Settling::Delete] {
        let database = FileDatabase::new(driver).await;
        let (acme, others) = (tenant("acme"), ["globex", "initech"].map(tenant));
        let written = database.commit(&acme, 1).await;
        let open = Open { connections: 3, ..database.open() }.busy(Duration::from_secs(20));
        let store = driver.store(&open, database.table.clone()).with_settling(settling);
        let claimed = claim(&store, &acme).await;
        let (one, other) = (database.commit(&others[0], 1).await, database.commit(&others[1], 1).await);
        let one = (claim(&store, &others[0]).await.claim, one);
        let other = (claim(&store, &others[1]).await.claim, other);
        // Every connection that is open waits for a writer.
        let mut writer = database.application().await;
        writer.execute("BEGIN IMMEDIATE").await;
        let settle = async |(claim, ids): (Box<dyn Claim>, _)| claim.settle(Settlement::published(ids)).await;
        let mut waiting = pin!(async { tokio::join!(settle(one), settle(other)) });
        let step = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
        assert!(step.is_err(), "another writes: {step:?}");

        restore_over(&database).await;
        let settled = claimed.claim.settle(Settlement::published(written)).await;
        assert_replaced(&settled.expect_err("its rows are not those that were published"), &database);
        writer.execute("COMMIT").await;
        for settled in <[_; 2]>::from(waiting.await) {
            assert_replaced(&settled.expect_err("marked in a file that nobody finds"), &database);
        }
        let left = database.pending().await;
        assert_eq!(left, [MessageId::new(1)], "{settling:?}");
    }
}

/// Promise: health is green only where the rows are that the application writes.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_database_replaced_while_nothing_is_pending_turns_health_red(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let store = store(&database);
    let config = RelayConfig::builder().tenants(["acme"]).build().expect("a configuration");
    let health = HealthCheck::new(store.clone(), &config);
    let before = health.check().await;
    assert!(before.is_healthy(), "{before}");
    restore_over(&database).await;
    let after = health.check().await;
    assert!(!after.is_healthy() && after.to_string().contains("reopen the pool"), "{after}");
    assert_replaced(&probe(&store).await.expect_err("it reads a file without a name"), &database);
    let pending = store.pending(&tenant("acme"), NonZeroU32::MIN).await;
    assert_replaced(&pending.expect_err("it reads a file without a name"), &database);
    let found = errors(&store.check().await.expect("a check"));
    assert!(found.contains("reopen the pool"), "{found}");
    // A pool and a store of their own are on the file that has the name, once the old ones are gone.
    drop((health, store));
    let again = self::store(&database);
    let reopened = async {
        loop {
            match probe(&again).await {
                Ok(found) => return found,
                Err(error) => assert_replaced(&error, &database),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(50), reopened).await, Ok(1));
}

/// Promise: what a claim hands out is what the probe saw, in the file where it will be marked.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_database_replaced_between_probe_and_claim_hands_nothing_out(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    database.commit(&acme, 3).await;
    let store = store(&database);
    assert_eq!(probe(&store).await.map_err(|error| chain(&error)), Ok(1));
    restore_over(&database).await;
    for _ in 0..3 {
        let claimed = try_claim(&store, &acme).await;
        assert_replaced(&claimed.expect_err("from which file?"), &database);
    }
    let left = database.pending().await;
    assert_eq!(left, [MessageId::new(1)]);
}

/// The connections are older than the store, and so is the other file: only the process itself can tell.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_store_made_on_connections_to_a_replaced_database_is_refused(driver: Driver) {
    if !cfg!(target_os = "linux") {
        return;
    }
    let database = FileDatabase::new(driver).await;
    let first = store(&database);
    assert_eq!(probe(&first).await.map_err(|error| chain(&error)), Ok(0));
    restore_over(&database).await;
    // On the same connections, with nothing known.
    let second = first.with_settling(Settling::Mark);
    assert_replaced(&probe(&second).await.expect_err("it reads a file without a name"), &database);
    assert_replaced(&try_claim(&second, &tenant("acme")).await.expect_err("the same"), &database);
}

/// A file that is moved away and back was never another one.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_database_that_comes_back_under_its_name_is_used_again(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    database.commit(&acme, 1).await;
    let store = store(&database);
    let claimed = claim(&store, &acme).await;
    let aside = database.directory.path().join("aside.db");
    std::fs::rename(database.path(), &aside).expect("moved away");
    let mut lost = claimed.claim;
    let error = lost.verify().await.expect_err("nobody finds it under its name");
    assert!(error.to_string().contains("reopen the pool"), "{error}");
    drop(lost);
    std::fs::rename(&aside, database.path()).expect("moved back");
    assert_eq!(claim(&store, &acme).await.messages.len(), 1);
    assert_eq!(probe(&store).await.map_err(|error| chain(&error)), Ok(1));
}
