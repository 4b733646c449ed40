//! Futures dropped at random places, a thousand times: nothing is left in the pool that the application shares.

use std::time::Duration;

use fastrand::Rng;
use outbox_core::{ClaimOutcome, HealthReport, MessageId, ProbeRequest, Relay, Settlement, Store, Tenants};
use outbox_sql::OutboxTable;
use outbox_testkit::Recorder;

use crate::AnyStore;
use crate::server::{
    Cut, Driver, Replica, ServerDatabase, Stage, StorePool, assert_pool_is_whole, message, quick, request,
    soon, tenant,
};

const DROPS: u32 = 1_000;

/// One of the store's operations, or the application's append in its own transaction, dropped somewhere.
async fn operation(random: &mut Rng, store: &AnyStore, pool: &StorePool) {
    match random.u32(0..6) {
        0 => {
            let _ = Cut::draw(random).run(store.probe(&ProbeRequest::new(Tenants::Discovered))).await;
        }
        1 => {
            let _ = Cut::draw(random).run(store.pending(&tenant("acme"), 10.try_into().unwrap())).await;
        }
        2 => {
            let _ = Cut::draw(random).run(store.claim(&request("acme"))).await;
        }
        3 => {
            // The drop of a claim before this one may not have reached the server yet: then it is held.
            let Ok(ClaimOutcome::Claimed(mut claimed)) = store.claim(&request("acme")).await else { return };
            let _ = Cut::draw(random).run(claimed.claim.verify()).await;
            // After a verification that was cut, this one says that the session is gone.
            let _ = claimed.claim.settle(Settlement::release()).await;
        }
        4 => {
            let Ok(ClaimOutcome::Claimed(claimed)) = store.claim(&request("acme")).await else { return };
            let published: Vec<MessageId> = claimed.messages.iter().map(|message| message.id).collect();
            let _ = Cut::draw(random).run(claimed.claim.settle(Settlement::published(published))).await;
        }
        _ => {
            let (table, message) = (OutboxTable::default(), message("cut", "{}"));
            pool.append_in_transaction(&table, &message, Cut::draw(random)).await;
        }
    }
}

/// Claims, verifications, settlements, probes, reads and appends dropped at random awaits, on a pool that the
/// application uses too. Each time the application's next write in no transaction is really committed, and in the
/// end there is no lock, no open transaction, and not one connection more or less.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_thousand_dropped_futures_lose_no_write_of_the_application_and_leave_nothing_behind<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let store = stage.store(3);
    let pool = StorePool::of(&store);
    let mut random = Rng::with_seed(0x0b0c);
    stage.append("acme", 3).await;
    let count = "SELECT count(*) FROM outbox_message WHERE tenant_id = 'application'";
    for round in 1..=DROPS {
        operation(&mut random, &store, &pool).await;
        let message = message("application", "{}");
        soon("the application's write", pool.append(stage.description(), &message)).await;
        assert_eq!(stage.database.number(count).await, i64::from(round), "round {round}: the write was lost");
        if round % 50 == 0 {
            stage.append("acme", 3).await;
        }
    }
    stage.database.wait_until_nothing_is_left().await;
    assert_pool_is_whole(&store).await;
    let fewer = async {
        while stage.database.sessions().await > 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("what was dropped is closed", fewer).await;

    // The store works as before.
    stage.append("acme", 1).await;
    let recorder = Recorder::new();
    let relay = Relay::builder(store, recorder.clone(), quick().build().unwrap()).build().unwrap();
    let report = soon("the rest is published", relay.drain()).await.unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(stage.pending().await, 0);
    recorder.assert_in_order();
    recorder.assert_no_duplicates();
    stage.end().await;
}

/// The relay's own `run` future dropped at random, again and again: what it was doing ends by itself, so that
/// nothing is lost, nothing is published twice, and nothing is left.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn dropped_runs_of_the_relay_lose_nothing_repeat_nothing_and_leave_nothing_behind<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let store = stage.store(3);
    let recorder = Recorder::new();
    let mut random = Rng::with_seed(0xcafe);
    let config = quick().poll_interval(Duration::from_millis(1)).initial_batch(4).max_batch(4);
    let relay = Relay::builder(store.clone(), recorder.clone(), config.build().unwrap()).build().unwrap();
    let mut written = Vec::new();
    for _ in 0..150 {
        written.extend(stage.append("acme", 4).await);
        let time = Duration::from_micros(random.u64(0..15_000));
        let cut = tokio::time::timeout(time, relay.run(std::future::pending())).await;
        assert!(cut.is_err(), "the relay ended by itself: {cut:?}");
    }
    let replica = Replica::start(&store, recorder.clone(), quick());
    stage.wait_until_published().await;
    replica.health(HealthReport::is_healthy).await;
    replica.stop().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    recorder.assert_in_order();
    recorder.assert_no_duplicates();
    stage.database.wait_until_nothing_is_left().await;
    assert_pool_is_whole(&store).await;
    stage.end().await;
}
