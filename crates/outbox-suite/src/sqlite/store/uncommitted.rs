//! Connections that are set to read what others have not committed, which counts where they share their cache.

use std::num::NonZeroU32;

use outbox_core::{ProbeRequest, Store as _, StoreError, StoreErrorKind, Tenants};
use outbox_sql::OutboxTable;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, Open, errors, message, tenant, try_claim};

/// Promise: a row that rolls back is never seen. The writer's transaction is open all the while.
async fn refuses_to_see_it(driver: Driver, open: &Open, options: SqliteConnectOptions) {
    let acme = tenant("acme");
    let table = OutboxTable::default();
    let mut keeper = options.connect().await.expect("the database opens");
    driver.create(&mut keeper, &table).await;
    let mut writer = driver.connect(open).await;
    writer.execute("BEGIN").await;
    writer.append(&table, &message(&acme, 1)).await.expect("appended");
    let dirty = open.clone().setup("PRAGMA read_uncommitted = 1");
    let store = driver.store(&dirty, table);
    let probe = store.probe(&ProbeRequest::new(Tenants::Discovered)).await;
    let pending = store.pending(&acme, NonZeroU32::MIN).await;
    let claim = try_claim(&store, &acme).await;
    let refusals: [StoreError; 3] = [
        probe.map(|found| found.oldest.len()).expect_err("it saw what is not committed"),
        pending.map(|found| found.len()).expect_err("it saw what is not committed"),
        claim.map(|found| found.is_some()).expect_err("it saw what is not committed"),
    ];
    for error in refusals {
        assert_eq!(error.kind(), StoreErrorKind::Permanent, "{error}");
        assert!(error.message().contains("PRAGMA read_uncommitted"), "{error}");
    }
    assert!(errors(&store.check().await.expect("a check")).contains("PRAGMA read_uncommitted"));
    writer.execute("ROLLBACK").await;
    keeper.close().await.expect("closed");
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_connection_that_reads_what_is_not_committed_is_refused_in_memory(driver: Driver) {
    let name = "file:uncommitted?mode=memory&cache=shared";
    refuses_to_see_it(driver, &Open::named(name), SqliteConnectOptions::new().filename(name)).await;
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_connection_that_reads_what_is_not_committed_is_refused_on_a_file(driver: Driver) {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("app.db").display().to_string();
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    refuses_to_see_it(driver, &Open::named(format!("file:{path}?cache=shared")), options).await;
}

/// Without a shared cache the setting says nothing, and nobody is refused for it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_setting_is_no_matter_where_no_cache_is_shared(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    database.commit(&acme, 1).await;
    let store = database.store_as(&database.open().setup("PRAGMA read_uncommitted = 1"));
    assert!(try_claim(&store, &acme).await.expect("a claim").is_some());
    assert_eq!(store.check().await.expect("a check"), []);
}
