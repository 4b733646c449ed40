//! Futures dropped at random places: nothing is left in the pool that the application shares.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use outbox_core::{ClaimOutcome, MessageId, ProbeRequest, Settlement, Store, Tenants};
use outbox_sql::OutboxTable;

use crate::AnyStore;
use crate::mysql::{Database, Driver, STORE};
use crate::server::{BOUND, claim, message, request, tenant};

const DROPS: u32 = 500;

/// Lets a future run for a random time, or for a random number of polls, and drops it.
async fn cut<F: Future>(random: &mut Rng, future: F) {
    if random.bool() {
        let time = Duration::from_micros(random.u64(0..4_000));
        let _ = tokio::time::timeout(time, future).await;
        return;
    }
    let mut polls = random.u32(0..16);
    let mut future = pin!(future);
    poll_fn(|context| {
        if polls == 0 {
            return Poll::Ready(());
        }
        polls -= 1;
        match future.as_mut().poll(context) {
            // The last one: what it waits for is still under way when it is dropped.
            Poll::Pending if polls == 0 => Poll::Ready(()),
            answer => answer.map(drop),
        }
    })
    .await;
}

/// One of the store's operations, dropped somewhere. Each time for a tenant that may have no row of claims yet.
async fn operation(random: &mut Rng, store: &AnyStore) {
    let acme = format!("acme {}", random.u32(0..100));
    match random.u32(0..6) {
        0 => cut(random, store.probe(&ProbeRequest::new(Tenants::Discovered))).await,
        1 => cut(random, store.probe(&ProbeRequest::new(Tenants::Named([tenant(&acme)].into())))).await,
        2 => cut(random, store.pending(&tenant(&acme), 10.try_into().unwrap())).await,
        3 => cut(random, store.claim(&request(&acme))).await,
        4 => {
            // The drop of a claim before this one may not have reached the server yet: then it is held.
            let Ok(ClaimOutcome::Claimed(mut claimed)) = store.claim(&request(&acme)).await else { return };
            cut(random, claimed.claim.verify()).await;
            // After a verification that was cut, this one says that the session is gone.
            let _ = claimed.claim.settle(Settlement::release()).await;
        }
        _ => {
            let Ok(ClaimOutcome::Claimed(claimed)) = store.claim(&request(&acme)).await else { return };
            let published: Vec<MessageId> = claimed.messages.iter().map(|message| message.id).collect();
            cut(random, claimed.claim.settle(Settlement::published(published))).await;
        }
    }
}

/// Claims, verifications, settlements, probes and reads dropped at random awaits, on a pool that the application
/// uses too. Each time the application gets a connection, and its next write in no transaction is really committed;
/// in the end there is no lock, no open transaction, and not one connection more or less.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn dropped_futures_lose_no_write_of_the_application_and_leave_nothing_behind(
    driver: Driver,
) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let pool = driver.pool(database.options_of(STORE), 3);
    let store = pool.store(table.description());
    let mut random = Rng::with_seed(0x0b0c);
    let rows: Vec<_> = (0..100).map(|number| message(&format!("acme {number}"), "1")).collect();
    database.append(&table, &rows).await;
    let count = "SELECT count(*) FROM outbox_message WHERE tenant_id = 'application'";
    for round in 1..=DROPS {
        operation(&mut random, &store).await;
        let message = message("application", "{}");
        let appending = pool.append(table.description(), &message);
        tokio::time::timeout(Duration::from_secs(50), appending)
            .await
            .expect("a connection of the pool hangs");
        assert_eq!(database.number(count).await, i64::from(round), "round {round}: the write was lost");
    }
    database.wait_until_nothing_is_left(STORE).await;
    assert_eq!(database.locked_claims(&table).await, 0);
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(pool.lend().await.unwrap());
    }
    assert_eq!(pool.size(), 3);
    let begun = std::time::Instant::now();
    while database.sessions(STORE).await != 3 {
        assert!(begun.elapsed() < BOUND, "a connection is left over");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(all);
    assert_eq!(claim(&store, "application").await.messages.len(), 100);
    database.drop().await;
}

/// A claim's drop needs no runtime and does not panic, on a pool that keeps connections too, which spawns a task in
/// its drop.
pub(crate) fn a_claim_can_be_dropped_on_any_thread(driver: Driver) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, claimed) = runtime.block_on(async {
        let database = Database::create(driver).await;
        let table = database.make(&OutboxTable::default()).await;
        let store = driver.pool_that_keeps_one(database.options_of(STORE), 2).store(table.description());
        (database, claim(&store, "acme").await)
    });
    std::thread::spawn(move || drop(claimed)).join().expect("dropping a claim panicked");
    runtime.block_on(async {
        database.wait_until_nothing_is_left(STORE).await;
        database.drop().await;
    });
}
