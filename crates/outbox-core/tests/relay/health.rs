//! What health says, and when.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outbox_core::{
    BoxFuture, ClaimOutcome, ClaimRequest, Clock, HealthCheck, HealthProblem, HealthReport, ProbeRequest,
    Probed, RefusalClass, Relay, RelayState, Store, StoreError, StoreOperation, Timestamp, async_trait,
};
use outbox_memory::MemoryStore;
use outbox_testkit::{ManualClock, PublishFault, Recorder, StoreFault, When};

use crate::seen::Told;
use crate::stage::{POLL, Stage, calm, config, message, tenant};

/// Unhealthy is strictly older than the tolerated lag; each late tenant is named with its milliseconds.
#[tokio::test]
async fn a_tenant_is_behind_when_it_is_strictly_older_than_the_tolerated_lag() {
    let stage = Stage::new();
    stage.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Unavailable));
    stage.write("globex", 1);
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    stage.clock.advance(Duration::from_millis(9_100));
    stage.write("acme", 2);
    calm().await;
    stage.clock.advance(Duration::from_millis(50_900));
    let report = relay.health().check().await;
    assert!(report.is_healthy(), "60,000 ms are tolerated: {report}");
    assert_eq!((report.to_string().as_str(), HealthReport::NAME), ("healthy", "outbox"));
    stage.clock.advance(Duration::from_millis(1));
    assert_eq!(relay.health().check().await.to_string(), "globex is 60001 ms behind");
    stage.clock.advance(Duration::from_millis(10_099));
    let report = relay.health().check().await;
    assert_eq!(report.to_string(), "acme is 61000 ms behind, globex is 70100 ms behind");
    assert_eq!(report.tenants.get("acme").unwrap().lag, Some(Duration::from_secs(61)));
    stage.publisher.heal();
    stage.until(|| stage.all_marked()).await;
    assert!(relay.health().check().await.is_healthy(), "it recovers by itself");
}

/// Checks that come together are one probe with one answer.
#[tokio::test]
async fn concurrent_checks_share_one_probe() {
    let stage = Stage::new();
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    calm().await;
    stage.store.fail(StoreOperation::Probe, StoreFault::Slow(POLL / 4));
    let before = stage.store.started(StoreOperation::Probe);
    let health = relay.health();
    let checks: Vec<_> = (0..100)
        .map(|_| {
            let health = relay.health();
            tokio::spawn(async move { health.check().await })
        })
        .collect();
    // A caller that goes away takes the check from nobody.
    checks[0].abort();
    stage.pass(POLL / 4).await;
    assert_eq!(stage.store.started(StoreOperation::Probe), before + 1);
    for check in checks.into_iter().skip(1) {
        assert!(check.await.unwrap().is_healthy());
    }
    let again = tokio::spawn(async move { health.check().await });
    stage.pass(POLL / 4).await;
    assert!(again.await.unwrap().is_healthy());
    assert_eq!(stage.store.started(StoreOperation::Probe), before + 2, "a later check looks again");
}

/// S35: a database that does not answer is red at the deadline, and green again when it answers.
#[tokio::test]
async fn a_silent_database_is_red_at_the_deadline_and_green_when_it_answers() {
    let stage = Stage::new();
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    calm().await;
    stage.store.fail(StoreOperation::Probe, StoreFault::Hang);
    let health = relay.health();
    let check = tokio::spawn(async move { health.check().await });
    stage.pass(Duration::from_millis(4_999)).await;
    assert!(!check.is_finished());
    stage.pass(Duration::from_millis(1)).await;
    let report = check.await.unwrap();
    assert_eq!(report.to_string(), "the database did not answer within 5000 ms");
    stage.store.heal();
    assert!(relay.health().check().await.is_healthy());
}

/// A memory store that says this of its server.
struct Unfit(MemoryStore, &'static str);

#[async_trait]
impl Store for Unfit {
    fn source(&self) -> &str {
        self.0.source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        self.0.max_claims()
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        let mut found = self.0.probe(request).await?;
        found.unfit = Some(self.1.to_owned());
        Ok(found)
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.0.claim(request).await
    }
}

/// A server that applications may not write to is red, in the store's words; what is there goes out all the same.
#[tokio::test]
async fn a_server_that_may_be_the_wrong_one_is_red_and_claims_go_on() {
    let table = MemoryStore::new();
    table.append(message("acme"));
    let recorder = Recorder::new();
    let store = Unfit(table.clone(), "read-only by default\nhere");
    let relay = Relay::builder(store, recorder.clone(), config().build().unwrap()).build().unwrap();
    let running = relay.start().unwrap();
    recorder.wait_for_accepted(1).await;
    assert_eq!(relay.health().check().await.to_string(), "read-only by default\\nhere");
    running.stop().await.unwrap();
    assert!(table.unpublished().is_empty());
}

/// A store's error and its panic are problems, in its own words.
#[tokio::test]
async fn an_error_of_the_store_is_red() {
    for (fault, text) in [
        (StoreFault::Fail, "probe failed: it fails on purpose"),
        (StoreFault::Panic, "probe failed: the store panicked"),
    ] {
        let stage = Stage::new();
        let relay = stage.relay();
        let _running = relay.start().unwrap();
        calm().await;
        stage.store.fail(StoreOperation::Probe, fault);
        assert_eq!(relay.health().check().await.to_string(), text);
        stage.store.heal();
        assert!(relay.health().check().await.is_healthy());
    }
}

/// A relay that was not started, and one that was stopped, are red; a started one is green at once.
#[tokio::test]
async fn a_relay_that_does_not_run_is_red() {
    let stage = Stage::new();
    let relay = stage.relay();
    assert_eq!(relay.health().check().await.to_string(), "the relay is not started");
    let running = relay.start().unwrap();
    assert!(relay.health().check().await.is_healthy());
    running.stop().await.unwrap();
    let stopped = [HealthProblem::Relay { state: RelayState::Stopped }];
    assert_eq!(relay.health().check().await.problems, stopped);
    let _running = relay.start().unwrap();
    assert!(relay.health().check().await.is_healthy(), "it is started again");
}

/// S35: a relay whose task died is red, whoever asks; started again it is green.
#[tokio::test]
async fn a_dead_relay_is_red() {
    let stage = Stage::new();
    let relay = stage.relay();
    let theirs = relay.clone();
    let handle = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let handle = runtime.block_on(async {
            let handle = theirs.start().unwrap();
            tokio::task::yield_now().await;
            handle
        });
        drop(runtime);
        handle
    });
    let mut handle = handle.join().unwrap();
    assert_eq!(relay.health().check().await.to_string(), "the relay is dead");
    let error = handle.ended().await.unwrap_err();
    let again = handle.ended().await.unwrap_err();
    assert_eq!(again.to_string(), error.to_string(), "asked again, it answers the same");
    assert_eq!(error.to_string(), "the outbox relay's task died: the runtime shut down");
    let _running = relay.start().unwrap();
    assert!(relay.health().check().await.is_healthy());
}

/// A clock that panics when it is asked, once it is broken.
#[derive(Debug, Clone)]
struct Breakable(ManualClock, Arc<AtomicBool>);

impl Clock for Breakable {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        assert!(!self.1.load(Ordering::Relaxed), "the clock is broken");
        self.0.monotonic()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }
}

/// S35: a relay whose own loop panicked is red at the first check after it; started again it is green.
#[tokio::test]
async fn a_relay_whose_loop_panicked_is_red() {
    let stage = Stage::new();
    let clock = Breakable(stage.clock.clone(), Arc::default());
    let builder = stage.builder(config(), stage.broker.clone()).observer(stage.seen.clone());
    let relay = builder.clock(Arc::new(clock.clone())).build().unwrap();
    let mut handle = relay.start().unwrap();
    calm().await;
    assert!(relay.health().check().await.is_healthy());
    clock.1.store(true, Ordering::Relaxed);
    stage.clock.advance(POLL);
    let error = handle.ended().await.unwrap_err();
    assert!(error.to_string().contains("the clock is broken"), "{error}");
    assert_eq!(relay.health().check().await.to_string(), "the relay is dead");
    assert_eq!(stage.seen.notices().last(), Some(&Told::Died));
    clock.1.store(false, Ordering::Relaxed);
    let _running = relay.start().unwrap();
    assert!(relay.health().check().await.is_healthy());
}

/// A check that belongs to no relay looks at the store alone.
#[tokio::test]
async fn a_check_without_a_relay_judges_the_store_alone() {
    let stage = Stage::new();
    let config = config().max_lag(Duration::from_secs(1)).build().unwrap();
    let check = HealthCheck::new(stage.store.clone(), &config);
    assert!(check.check().await.is_healthy());
    stage.write("a", 1);
    stage.table.append_unreadable(tenant("b"));
    stage.clock.advance(Duration::from_secs(2));
    let report = check.check().await;
    let text = "a is 2000 ms behind, b is stopped by message 2, whose time cannot be read";
    assert_eq!((report.to_string().as_str(), report.relay), (text, None));
}

/// Without a runtime, a check is a problem and no panic.
#[test]
fn without_a_runtime_a_check_says_so() {
    let stage = Stage::new();
    let mut check = std::pin::pin!(async { stage.relay().health().check().await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(report) = check.as_mut().poll(&mut context) else { panic!("it waits") };
    assert!(report.to_string().contains("a health check needs a tokio runtime"), "{report}");
}
