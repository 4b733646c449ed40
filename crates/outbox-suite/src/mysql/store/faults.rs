//! Real faults, on a server of our own: ended sessions, restarts, crashes, a silent network, a read-only server.

use std::error::Error;
use std::str::FromStr;
use std::time::{Duration, Instant};

use outbox_core::{
    MessageId, ProbeRequest, Relay, RelayConfig, Settlement, Store, StoreErrorKind, StoreOperation, Tenants,
};
use outbox_sql::OutboxTable;
use outbox_sqlx::mysql::{MySqlTable, Severity};
use outbox_testkit::Recorder;
use servers::{MariaDb, Proxy};
use sqlx::mysql::MySqlConnectOptions;

use crate::AnyStore;
use crate::mysql::{Database, Driver, STORE};
use crate::server::{BOUND, SOON, StorePool, claim, is_held, message, refused, request, shrinks_to, tenant};

async fn stage(driver: Driver, server: &MariaDb) -> (Database, MySqlTable) {
    let options = MySqlConnectOptions::from_str(&server.url("mysql")).unwrap();
    let database = Database::create_on(driver, options).await;
    let table = database.make(&OutboxTable::default()).await;
    (database, table)
}

/// Until a store that lost its server has it again, its pool may still give out connections that are gone.
async fn until_it_answers(store: &AnyStore) {
    let begun = Instant::now();
    while let Err(error) = store.claim(&request("nobody")).await {
        assert_eq!(error.kind(), StoreErrorKind::Transient, "{error:?}");
        assert!(begun.elapsed() < BOUND, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The server goes down under a claim, in good order or by a crash: the claim is lost and says so, nothing is marked,
/// the tenant is free, ids go on where they were, and a relay publishes the rest by itself, in order.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_server_that_goes_down_loses_no_message_and_marks_none(driver: Driver) {
    let mut server = MariaDb::start(&[]).unwrap();
    let (database, table) = stage(driver, &server).await;
    let store = database.store(table.description());
    let mut written = Vec::new();
    for crash in [false, true] {
        written.extend(database.append(&table, &[message("acme", "1"), message("acme", "2")]).await);
        let mut claimed = claim(&store, "acme").await;
        let published: Vec<MessageId> = claimed.messages.iter().map(|message| message.id).collect();
        if crash {
            server.crash().unwrap();
            server.start_again().unwrap();
        } else {
            server.restart().unwrap();
        }
        let lost = claimed.claim.verify().await.unwrap_err();
        assert_eq!(lost.kind(), StoreErrorKind::Transient, "{lost:?}");
        claimed.claim.settle(Settlement::published(published)).await.unwrap_err();
        until_it_answers(&store).await;
        let free = claim(&store, "acme").await;
        assert_eq!(free.messages.len(), written.len());
        free.claim.settle(Settlement::release()).await.unwrap();
        database.wait_until("(SELECT count(*) FROM outbox_message WHERE published_at IS NOT NULL) = 0").await;
    }
    let recorder = Recorder::new();
    let config = RelayConfig::builder().discover_tenants().build().unwrap();
    let relay = Relay::builder(store, recorder.clone(), config).build().unwrap();
    assert!(relay.drain().await.unwrap().is_complete());
    let accepted = recorder.accepted(&tenant("acme"));
    assert_eq!(accepted.into_iter().map(MessageId::get).collect::<Vec<_>>(), written);
    assert!(written.is_sorted_by(|a, b| a < b), "an id was issued again: {written:?}");
}

/// A server that is read-only, from the start or under a claim, lets nothing be claimed or marked, and says so.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_read_only_server_refuses_the_claim_itself(driver: Driver) {
    let server = MariaDb::start(&[]).unwrap();
    let (database, table) = stage(driver, &server).await;
    let store = database.store(table.description());
    let written = database.append(&table, &[message("acme", "1")]).await;
    let claimed = claim(&store, "acme").await;
    server.execute("mysql", "SET GLOBAL read_only = 1").unwrap();
    let published = written.into_iter().map(MessageId::new);
    let error = claimed.claim.settle(Settlement::published(published)).await.unwrap_err();
    assert!(error.message().contains("read-only"), "{error:?}");
    let error = refused(&store, "acme").await;
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(error.message().contains("connect to the primary"), "{error}");
    let found = store.check().await.unwrap();
    assert!(found.iter().any(|finding| finding.message.contains("read-only (read_only)")), "{found:?}");
    // A quiet relay does nothing but probe.
    for tenants in [Tenants::Discovered, Tenants::Named([tenant("nobody")].into())] {
        let before = StorePool::of(&store).size();
        let error = store.probe(&ProbeRequest::new(tenants)).await.unwrap_err();
        assert!(error.message().contains("the server is read-only"), "{error}");
        shrinks_to(&store, before.saturating_sub(1)).await;
    }
    server.execute("mysql", "SET GLOBAL read_only = 0").unwrap();
    assert!(store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap().unfit.is_none());
    assert_eq!(claim(&store, "acme").await.messages.len(), 1);
}

/// A server that calls itself `TiDB`, which takes the claim's lock and does not keep it: whatever comes first is refused,
/// for good and in words that say why, and nothing is published.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_server_that_locks_nothing_is_refused_before_any_claim(driver: Driver) {
    let server = MariaDb::start(&[("version", "8.0.11-TiDB-v8.5.0")]).unwrap();
    let (database, table) = stage(driver, &server).await;
    let store = database.store(table.description());
    database.append(&table, &[message("acme", "1")]).await;
    let says = |said: &str| {
        assert!(said.contains("the server is TiDB (8.0.11-TiDB-v8.5.0"), "{said}");
        assert!(said.contains("use MySQL or MariaDB"), "{said}");
    };
    for _ in 0..2 {
        let error = refused(&store, "acme").await;
        assert_eq!((error.kind(), error.operation()), (StoreErrorKind::Permanent, StoreOperation::Claim));
        says(error.message());
        let error = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (StoreErrorKind::Permanent, StoreOperation::Probe));
        says(error.message());
    }
    let found = store.check().await.unwrap();
    assert!(found.len() == 1 && found[0].severity == Severity::Error, "{found:?}");
    says(&found[0].message);

    let recorder = Recorder::new();
    let config = RelayConfig::builder().tenants(["acme"]).build().unwrap();
    let relay = Relay::builder(store, recorder.clone(), config).build().unwrap();
    let error = relay.drain().await.unwrap_err();
    says(&error.source().unwrap().to_string());
    assert!(recorder.deliveries().is_empty());
    assert_eq!(database.locked_claims(&table).await, 0);
}

/// A server that is frozen and goes on: operations fail in their time, and the claim that lived through it settles.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_frozen_server_fails_operations_in_time_and_keeps_its_claims(driver: Driver) {
    let server = MariaDb::start(&[]).unwrap();
    let (database, table) = stage(driver, &server).await;
    let store = database.store(table.description());
    let written = database.append(&table, &[message("acme", "1")]).await;
    let claimed = claim(&store, "acme").await;
    server.pause().unwrap();
    let begun = Instant::now();
    let error = store.claim(&request("globex").with_timeout(Duration::from_millis(300))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient);
    assert!(begun.elapsed() < SOON);
    server.resume().unwrap();
    claimed.claim.settle(Settlement::published(written.into_iter().map(MessageId::new))).await.unwrap();
    assert_eq!(claim(&store, "acme").await.messages.len(), 0);
    let begun = Instant::now();
    while is_held(&store, "globex").await {
        assert!(begun.elapsed() < BOUND, "what was given up is held");
    }
}

/// The network goes silent under a claim: its operations fail in their time, the pool is whole afterwards, and the
/// tenant is free within the bound of silence, though the server never hears of the end.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_vanished_holder_keeps_its_tenant_for_the_bound_of_silence_and_no_longer(
    driver: Driver,
) {
    let server = MariaDb::start(&[]).unwrap();
    let (database, table) = stage(driver, &server).await;
    let proxy = Proxy::start(server.address()).unwrap();
    let behind = database.options_of(STORE).host("127.0.0.1").port(proxy.port());
    let pool = driver.pool(behind, 2);
    let silence = Duration::from_secs(2);
    let store = pool.store(table.description()).with_max_silence(silence);
    let other = database.store(table.description());
    let written = database.append(&table, &[message("acme", "1")]).await;
    let outcome = store.claim(&request("acme").with_timeout(Duration::from_millis(500))).await.unwrap();
    let outbox_core::ClaimOutcome::Claimed(mut claimed) = outcome else { panic!("{outcome:?}") };
    assert!(is_held(&other, "acme").await);
    proxy.freeze();
    let begun = Instant::now();
    let error = claimed.claim.verify().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient);
    let published = written.into_iter().map(MessageId::new);
    assert!(claimed.claim.settle(Settlement::published(published)).await.is_err());
    while is_held(&other, "acme").await {
        assert!(begun.elapsed() < BOUND, "a vanished holder keeps its tenant");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(claim(&other, "acme").await.messages.len(), 1, "nothing was marked");
    proxy.thaw();
    until_it_answers(&store).await;
    let both = (pool.lend().await.unwrap(), pool.lend().await.unwrap());
    assert_eq!(pool.size(), 2);
    drop(both);
}
