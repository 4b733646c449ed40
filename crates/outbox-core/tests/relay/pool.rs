//! What a relay needs around it: a pool that is large enough, and a runtime.

use std::num::NonZeroU32;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use outbox_core::{
    ClaimOutcome, ClaimRequest, ProbeRequest, Probed, Relay, RelayError, Store, StoreError, async_trait,
};
use outbox_memory::MemoryStore;
use outbox_testkit::Recorder;

use crate::stage::{Stage, config};

/// A store that can hold so many claims.
struct Pooled(u32, MemoryStore);

#[async_trait]
impl Store for Pooled {
    fn source(&self) -> &str {
        self.1.source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.0)
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        self.1.probe(request).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.1.claim(request).await
    }
}

fn build(pool: u32, concurrency: Option<usize>) -> Result<usize, String> {
    let config = concurrency.map_or_else(config, |number| config().concurrency(number)).build().unwrap();
    let relay = Relay::builder(Pooled(pool, MemoryStore::new()), Recorder::new(), config).build();
    relay.map(|relay| relay.concurrency().get()).map_err(|error| error.to_string())
}

/// A concurrency at or above the pool's size is refused, with what to do; one is right for every pool.
#[test]
fn a_concurrency_that_the_pool_cannot_hold_is_refused() {
    assert_eq!(build(5, Some(4)), Ok(4));
    assert_eq!(build(1, Some(1)), Ok(1));
    let error = build(4, Some(4)).unwrap_err();
    assert!(error.contains("a concurrency of 4 needs a pool of at least 5 connections, this store's has 4"));
    assert!(error.contains("lower the concurrency or enlarge the pool"), "{error}");
}

/// Left alone, the concurrency is four, or what the pool has room for beside a probe, and at least one.
#[test]
fn the_default_concurrency_fits_the_pool() {
    for (pool, expected) in [(1, 1), (2, 1), (3, 2), (5, 4), (100, 4)] {
        assert_eq!(build(pool, None), Ok(expected), "a pool of {pool}");
    }
    assert_eq!(Stage::new().relay().concurrency().get(), 4);
}

/// Polls a future that has to answer at once.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("it waits"),
    }
}

/// Outside of a runtime, starting, running and draining are typed errors.
#[test]
fn without_a_runtime_every_way_to_start_is_a_typed_error() {
    let relay = Stage::new().relay();
    assert!(matches!(relay.start(), Err(RelayError::NoRuntime)));
    assert!(matches!(at_once(relay.run(std::future::pending())), Err(RelayError::NoRuntime)));
    assert!(matches!(at_once(relay.drain()), Err(RelayError::NoRuntime)));
}

/// The options are public: one that was set out of its range later on is refused all the same.
#[test]
fn an_option_set_out_of_its_range_after_the_check_is_refused() {
    let mut config = config().build().unwrap();
    config.poll_interval = std::time::Duration::ZERO;
    let error = Relay::builder(MemoryStore::new(), Recorder::new(), config).build().unwrap_err();
    assert!(error.to_string().contains("poll_interval must be 1 to 60000 ms"), "{error}");
}

/// A runtime without a timer can wait for nothing: that is said at once, by the relay and by its health.
#[test]
fn a_runtime_without_a_timer_is_refused() {
    let relay =
        Relay::builder(MemoryStore::new(), Recorder::new(), config().build().unwrap()).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert!(matches!(relay.start(), Err(RelayError::NoTimer)));
        assert!(matches!(relay.drain().await, Err(RelayError::NoTimer)));
        let report = relay.health().check().await.to_string();
        assert!(report.contains("a health check needs a tokio runtime with a timer"), "{report}");
    });
}
