//! Marking: under the lock, retried while a writer is busy, and safe to be dropped.

use std::pin::pin;
use std::time::{Duration, Instant};

use outbox_core::{ClaimOutcome, MessageId, Settlement, Settling, Store as _, StoreErrorKind};
use sqlx::SqliteConnection;

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, claim, ids, message, request, tenant, try_claim};
use crate::{AnyStore, chain};

async fn begin_write(connection: &mut SqliteConnection) {
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(connection).await.expect("a write transaction");
}

async fn commit(connection: &mut SqliteConnection) {
    sqlx::raw_sql("COMMIT").execute(connection).await.expect("committed");
}

/// A store that waits for a busy database as long as this before SQLite says so.
fn patient(database: &FileDatabase, busy: Duration) -> AnyStore {
    database.store_as(&database.open().busy(busy))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_mark_waits_for_a_long_writer_and_keeps_the_tenant_meanwhile(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 2).await;
    let (store, other) = (patient(&database, Duration::ZERO), database.store());
    drop(claim(&other, &acme).await);
    let claimed = claim(&store, &acme).await;
    let mut writer = database.connection().await;
    begin_write(&mut writer).await;
    let mut settling = pin!(claimed.claim.settle(Settlement::published(written.clone())));
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(150) {
        let step = tokio::time::timeout(Duration::from_millis(20), &mut settling).await;
        assert!(step.is_err(), "nothing can be marked while another writes: {step:?}");
        assert!(try_claim(&other, &acme).await.expect("a claim").is_none(), "the tenant is still held");
    }
    commit(&mut writer).await;
    settling.await.expect("marked, after several attempts");
    assert!(claim(&other, &acme).await.messages.is_empty());
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_mark_gives_up_when_its_time_is_over_and_frees_the_tenant(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 2).await;
    let (store, other) = (patient(&database, Duration::from_millis(10)), database.store());
    drop(claim(&other, &acme).await);
    let request = request(&acme, 10).with_timeout(Duration::from_millis(100));
    let Ok(ClaimOutcome::Claimed(claimed)) = store.claim(&request).await else { panic!("it is free") };
    let mut writer = database.connection().await;
    begin_write(&mut writer).await;
    let outcome = claimed.claim.settle(Settlement::published(written.clone())).await;
    let error = outcome.expect_err("another writes all the time");
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{}", chain(&error));
    let again = claim(&other, &acme).await;
    assert_eq!(ids(&again), written);
    commit(&mut writer).await;
    again.claim.settle(Settlement::published(written)).await.expect("marked by the next holder");
    assert_eq!(database.marked().await, 2);
}

/// The driver's thread waits for a writer inside the `UPDATE`. Whoever drops the settlement's future does not
/// stop it: if the tenant were free before, its rows would be marked behind the next holder's back.
async fn drop_a_settlement_that_is_marking(database: &FileDatabase) {
    let acme = tenant("acme");
    let written = database.commit(&acme, 2).await;
    let (store, other) = (patient(database, Duration::from_secs(20)), database.store());
    drop(claim(&other, &acme).await);
    let claimed = claim(&store, &acme).await;
    let mut writer = database.connection().await;
    begin_write(&mut writer).await;
    {
        let mut settling = pin!(claimed.claim.settle(Settlement::published(written)));
        let step = tokio::time::timeout(Duration::from_millis(100), &mut settling).await;
        assert!(step.is_err(), "the driver waits for the writer");
    }
    for _ in 0..20 {
        assert!(try_claim(&other, &acme).await.expect("a claim").is_none(), "freed while it may still mark");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    commit(&mut writer).await;
    let again = claim(&other, &acme).await;
    let (handed_out, marked) = (again.messages.len(), database.marked().await);
    assert_eq!(marked + i64::try_from(handed_out).expect("few"), 2, "marked before the tenant was free");
    // The driver was in its statement: it marked.
    assert_eq!(marked, 2);
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_dropped_settlement_keeps_the_tenant_until_the_driver_is_through(driver: Driver) {
    drop_a_settlement_that_is_marking(&FileDatabase::new(driver).await).await;
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_dropped_settlement_keeps_the_tenant_on_a_runtime_of_threads_too(driver: Driver) {
    drop_a_settlement_that_is_marking(&FileDatabase::new(driver).await).await;
}

/// A runtime that is shut down drops its tasks in the middle; the process goes on.
pub(crate) fn a_runtime_that_ends_during_a_settlement_does_not_free_the_tenant_either(driver: Driver) {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (first, second) = (runtime().expect("a runtime"), runtime().expect("a runtime"));
    let acme = tenant("acme");
    let (database, written, mut writer) = second.block_on(async {
        let database = FileDatabase::new(driver).await;
        let written = database.commit(&acme, 2).await;
        drop(claim(&database.store(), &acme).await);
        let writer = database.connection().await;
        (database, written, writer)
    });
    let (begun, begins) = std::sync::mpsc::channel();
    let store = first.block_on(async { patient(&database, Duration::from_secs(20)) });
    let claimed = first.block_on(claim(&store, &acme));
    second.block_on(begin_write(&mut writer));
    first.spawn(async move {
        let mut settling = pin!(claimed.claim.settle(Settlement::published(written)));
        let _ = tokio::time::timeout(Duration::from_millis(100), &mut settling).await;
        begun.send(()).expect("somebody waits");
        let _ = settling.await;
    });
    begins.recv().expect("it is marking");
    drop(store);
    first.shutdown_timeout(Duration::from_millis(50));
    second.block_on(async {
        let other = database.store();
        for _ in 0..20 {
            assert!(try_claim(&other, &acme).await.expect("a claim").is_none(), "it may still mark");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        commit(&mut writer).await;
        assert!(claim(&other, &acme).await.messages.is_empty());
        assert_eq!(database.marked().await, 2);
    });
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn fewer_rows_marked_than_given_is_an_error_that_says_so(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 3).await;
    let store = database.store();
    let claimed = claim(&store, &acme).await;
    let mut stranger = database.connection().await;
    sqlx::raw_sql(
        "UPDATE outbox_message SET published_at = 1 WHERE id = (SELECT min(id) FROM outbox_message)",
    )
    .execute(&mut stranger)
    .await
    .expect("somebody marks without holding the tenant");
    let error = claimed.claim.settle(Settlement::published(written)).await.expect_err("not all were marked");
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(error.message().contains("2 of 3 published messages were marked"), "{error}");
    assert!(claim(&store, &acme).await.messages.is_empty());
}

/// The application's writes go on while the relay publishes: no transaction is open.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_application_writes_while_a_tenant_is_held(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 1).await;
    let store = database.store();
    let claimed = claim(&store, &acme).await;
    let mut application = driver.connect(&database.open().busy(Duration::ZERO)).await;
    let written_at_once = application.append(&database.table, &message(&acme, 9)).await;
    written_at_once.expect("without waiting");
    claimed.claim.settle(Settlement::published(written)).await.expect("marked");
}

/// Deleting takes exactly the rows whose messages were accepted.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn settling_deletes_exactly_the_accepted_rows(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 4).await;
    let store = database.store().with_settling(Settling::Delete);
    let claimed = claim(&store, &acme).await;
    claimed.claim.settle(Settlement::published([written[2], written[0]])).await.expect("a settlement");
    let mut connection = database.connection().await;
    let left: Vec<i64> = sqlx::query_scalar("SELECT id FROM outbox_message ORDER BY id")
        .fetch_all(&mut connection)
        .await
        .expect("the rows");
    assert_eq!(left, [written[1], written[3]].map(MessageId::get));
    assert_eq!(ids(&claim(&store, &acme).await), [written[1], written[3]]);
    assert_eq!(store.check().await.expect("a check"), []);
}
