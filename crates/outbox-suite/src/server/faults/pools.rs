//! Pools that are as small as can be.

use std::num::NonZeroUsize;
use std::time::Duration;

use outbox_core::{HealthReport, Relay};
use outbox_testkit::Recorder;

use crate::server::{
    Driver, Entry, Gate, Replica, ServerDatabase, Stage, assert_pool_is_whole, quick, soon, tenant,
};

/// Everything is published in order on a pool of this size, with health asked all the while, and a stop ends.
async fn everything_works_on<D: ServerDatabase>(driver: Driver<D>, connections: u32) -> NonZeroUsize {
    let stage = Stage::new(driver).await;
    let tenants = ["acme", "globex", "initech"];
    let mut written = Vec::new();
    for tenant in tenants {
        written.push(stage.append(tenant, 40).await);
    }
    let recorder = Recorder::new();
    let store = stage.store(connections);
    let config = quick().initial_batch(8).max_batch(8).health_timeout(Duration::from_secs(10));
    let replica = Replica::start(&store, recorder.clone(), config);
    let published = async {
        recorder.wait_for_accepted(120).await;
        stage.wait_until_published().await;
    };
    let asking = async {
        for _ in 0..10 {
            replica.health(HealthReport::is_healthy).await;
        }
    };
    soon("everything is published", async { tokio::join!(published, asking) }).await;
    for (name, written) in tenants.iter().zip(&written) {
        assert_eq!(recorder.accepted(&tenant(name)), *written);
    }
    recorder.assert_in_order();
    recorder.assert_no_duplicates();
    assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
    let concurrency = replica.relay.concurrency();
    replica.stop().await;
    stage.database.wait_until_nothing_is_left().await;
    assert_pool_is_whole(&store).await;
    stage.end().await;
    concurrency
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_pool_of_one_connection_publishes_everything<D: ServerDatabase>(driver: Driver<D>) {
    assert_eq!(everything_works_on(driver, 1).await.get(), 1);
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_pool_of_two_connections_publishes_everything<D: ServerDatabase>(driver: Driver<D>) {
    assert_eq!(everything_works_on(driver, 2).await.get(), 1);
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_pool_of_six_connections_has_room_for_the_default_concurrency<D: ServerDatabase>(
    driver: Driver<D>,
) {
    assert_eq!(everything_works_on(driver, 6).await.get(), 4);
}

/// The only connection is the claim's while a message is being published: the probe waits for it, and a stop ends
/// all the same.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_relay_on_one_connection_stops_in_the_middle_of_a_publish<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let written = stage.append("acme", 3).await;
    let gate = Gate::at(written[1]);
    let recorder = Recorder::around(gate.clone());
    let store = stage.store(1);
    let replica = Replica::start(&store, recorder.clone(), quick());
    gate.entered().await;
    let stopping = tokio::spawn(replica.handle.stop());
    gate.open();
    soon("the relay stops", stopping).await.unwrap().unwrap();
    let accepted = recorder.accepted(&tenant("acme"));
    assert!(accepted == written[..2] || accepted == written, "{accepted:?}");
    assert_eq!(usize::try_from(stage.pending().await).unwrap(), written.len() - accepted.len());
    stage.end().await;
}

/// More claims at once than the pool can hold beside a probe is an error that says so, before anything starts.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_concurrency_that_the_pool_cannot_hold_is_refused<D: ServerDatabase>(driver: Driver<D>) {
    let stage = Stage::new(driver).await;
    let config = quick().concurrency(4).build().unwrap();
    let error = Relay::builder(stage.store(4), Recorder::new(), config).build().unwrap_err().to_string();
    assert!(error.contains("concurrency") && error.contains("pool"), "{error}");
    stage.end().await;
}
