//! Futures of the store dropped at every place where they can wait.

use std::future::poll_fn;
use std::num::NonZeroU32;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use outbox_core::{ClaimOutcome, ProbeRequest, Settlement, Store, StoreErrorKind, Tenants};
use outbox_sql::OutboxTable;

use crate::AnyStore;
use crate::postgres::proxy::Proxy;
use crate::postgres::{Database, Driver, STORE};
use crate::server::{StorePool, claim, ids, message, request, tenant};

async fn operations(store: AnyStore) {
    let limit = NonZeroU32::MIN;
    store.pending(&tenant("acme"), limit).await.unwrap();
    store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap();
    // The server may not have noticed yet that the session of an earlier round is gone.
    let ClaimOutcome::Claimed(mut claimed) = store.claim(&request("acme")).await.unwrap() else { return };
    claimed.claim.verify().await.unwrap();
    let first = ids(&claimed)[0];
    let settlement = Settlement::published([outbox_core::MessageId::new(first)]);
    claimed.claim.settle(settlement).await.unwrap();
}

/// A write of the application on the pool, in no transaction: it must really be there.
async fn write_is_there(database: &Database, pool: &StorePool, place: &str) {
    let id = pool.append(&OutboxTable::default(), &message("app", "mine")).await;
    let there = format!("SELECT count(*) FROM outbox_message WHERE id = {id}");
    assert_eq!(database.number(there).await, 1, "dropped at {place}: the application's next write was lost");
}

/// Guard: the connection is armed *before* BEGIN is sent, and until the COMMIT was answered. At each statement of
/// each operation: it was sent, its answer is outstanding, the future is dropped.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_future_dropped_while_an_answer_is_outstanding_leaves_nothing_in_the_pool(
    driver: Driver,
) {
    let places = [
        "LIMIT (SELECT $2::pg_catalog.int8)",
        "WITH RECURSIVE",
        "BEGIN",
        "SET LOCAL",
        "pg_try_advisory",
        "WITH batch AS",
        "SELECT 1",
        "UPDATE",
        "COMMIT",
    ];
    for variant in driver.variants() {
        let database = Database::create(driver).await;
        let table = database.make(&OutboxTable::default()).await;
        let proxy = Proxy::start(&database.options).await;
        for place in places {
            database.append(&table, &[message("acme", "1")]).await;
            let pool = driver.pool(proxy.options(&database.store_options()), 1);
            let store = pool.store(table.description());
            let store = variant.clone().into_iter().fold(store, AnyStore::with);
            // The connection is made, so that what is held is the answer to the statement.
            drop(pool.lend().await.unwrap());
            proxy.hold_answer_to(place);
            tokio::select! {
                () = operations(store) => panic!("{place} was never sent"),
                () = proxy.holding() => {}
            }
            proxy.release();
            write_is_there(&database, &pool, place).await;
            database.wait_until_nothing_is_left(STORE).await;
            assert!(pool.size() <= 1);
            pool.close().await;
        }
        database.drop().await;
    }
}

/// Dropped after any number of polls, hundreds of times: no lock, no transaction, and the next write is there.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_future_dropped_after_any_number_of_polls_leaves_nothing_behind(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let pool = database.store_pool(1);
    let store = pool.store(table.description());
    database.append(&table, &vec![message("acme", "1"); 600]).await;
    for round in 0..400 {
        let mut polls = round % 40;
        let mut all = pin!(operations(store.clone()));
        poll_fn(|context| {
            if polls == 0 {
                return Poll::Ready(());
            }
            polls -= 1;
            all.as_mut().poll(context)
        })
        .await;
        all.set(operations(store.clone()));
        if round % 5 == 0 {
            write_is_there(&database, &pool, &format!("poll {}", round % 40)).await;
        }
    }
    database.wait_until_nothing_is_left(STORE).await;
    pool.close().await;
    database.drop().await;
}

/// An operation that overruns its request's timeout is an error in that time; its connection is closed and
/// neither given back nor lost.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_mark_that_waits_for_a_locked_table_ends_with_the_timeout(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let written = database.append(&table, &[message("acme", "1")]).await;
    let pool = database.store_pool(1);
    let store = pool.store(table.description());
    let request = request("acme").with_timeout(Duration::from_millis(300));
    let ClaimOutcome::Claimed(claimed) = store.claim(&request).await.unwrap() else {
        panic!("held");
    };
    let mut locker = database.admin.begin().await.unwrap();
    // What the claim reads it has read, and what it marks it must wait for.
    sqlx::raw_sql("LOCK TABLE outbox_message IN SHARE MODE").execute(&mut *locker).await.unwrap();
    let published = [outbox_core::MessageId::new(written[0])];
    let error = claimed.claim.settle(Settlement::published(published)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
    locker.rollback().await.unwrap();
    database.wait_until_nothing_is_left(STORE).await;
    assert_eq!(ids(&claim(&store, "acme").await), written, "nothing is marked");
    pool.close().await;
    database.drop().await;
}

/// A pool without a free connection is an error within the request's timeout.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn waiting_for_the_pool_ends_with_the_timeout(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let pool = database.store_pool(1);
    let store = pool.store(table.description());
    let busy = pool.lend().await.unwrap();
    let probe = ProbeRequest::new(Tenants::Discovered).with_timeout(Duration::from_millis(50));
    let error = store.probe(&probe).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
    drop(busy);
    assert!(store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap().oldest.is_empty());
    pool.close().await;
    database.drop().await;
}
