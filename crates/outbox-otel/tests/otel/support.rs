//! Relays over the memory store with a clock that only a test moves, and readers of what observers told.

#[cfg(any(feature = "trace", feature = "tracing"))]
mod headers;
#[cfg(feature = "metrics")]
mod points;
#[cfg(feature = "tracing")]
mod recording;
#[cfg(feature = "trace")]
mod spans;

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{NewMessage, Publishing, Relay, RelayBuilder, RelayConfig, Store, TenantId};
use outbox_memory::MemoryStore;
use outbox_testkit::ManualClock;

#[cfg(any(feature = "trace", feature = "tracing"))]
pub(crate) use headers::HeaderRecorder;
#[cfg(feature = "metrics")]
pub(crate) use points::{Meters, Point, Sort, whole};
#[cfg(feature = "tracing")]
pub(crate) use recording::Recording;
#[cfg(feature = "trace")]
pub(crate) use spans::{Spans, texts};

/// How often everybody else gets a chance to go on before the clock moves.
#[cfg(any(feature = "metrics", feature = "trace"))]
const CHANCES: usize = 64;

/// A table and its clock.
pub(crate) struct Outbox {
    pub(crate) store: MemoryStore,
    pub(crate) clock: ManualClock,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new();
        Self { store: MemoryStore::new().with_clock(Arc::new(clock.clone())), clock }
    }

    /// Appends `count` messages of the kind `order.placed` about the subjects `subject-<tenant>-<n>`.
    pub(crate) fn append(&self, tenant: &str, count: usize) {
        for n in 0..count {
            self.store.append(order(tenant, n));
        }
    }

    pub(crate) fn relay(&self, publishing: impl Into<Publishing>) -> RelayBuilder {
        self.relay_of(self.store.clone(), publishing)
    }

    /// A relay of whichever tenants have something, whose batches last long enough to be verified.
    pub(crate) fn relay_of(&self, store: impl Store, publishing: impl Into<Publishing>) -> RelayBuilder {
        let config = RelayConfig::builder().discover_tenants().max_batch_time(Duration::from_secs(600));
        let config = config.build().expect("valid");
        Relay::builder(store, publishing, config).clock(Arc::new(self.clock.clone())).seed(1)
    }

    /// Moves the clock from sleeper to sleeper until the condition holds.
    #[cfg(any(feature = "metrics", feature = "trace"))]
    pub(crate) async fn run_until(&self, mut holds: impl FnMut() -> bool) {
        for _ in 0..20_000 {
            for _ in 0..CHANCES {
                if holds() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            self.clock.advance_to_next_sleeper().await;
        }
        panic!("it never came to hold");
    }

    /// Moves the clock on by `duration`, from sleeper to sleeper.
    #[cfg(any(feature = "metrics", feature = "trace"))]
    pub(crate) async fn run_for(&self, duration: Duration) {
        let mut left = duration;
        while !left.is_zero() {
            for _ in 0..CHANCES {
                tokio::task::yield_now().await;
            }
            let step = left.min(Duration::from_millis(100));
            self.clock.advance(step);
            left -= step;
        }
        for _ in 0..CHANCES {
            tokio::task::yield_now().await;
        }
    }
}

pub(crate) fn tenant(id: &str) -> TenantId {
    TenantId::new(id).expect("a tenant id")
}

pub(crate) fn order(of: &str, n: usize) -> NewMessage {
    NewMessage::new(tenant(of), "order.placed", format!("subject-{of}-{n}"), "12345")
}
