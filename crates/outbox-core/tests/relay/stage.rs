//! What every test plays on: a table, a store and a publisher with faults, records, and the clock.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use outbox_core::{
    MessageId, NewMessage, ProbeRequest, Publishing, Relay, RelayBuilder, RelayConfig, RelayConfigBuilder,
    Store, TenantId, Tenants,
};
use outbox_memory::MemoryStore;
use outbox_testkit::{FaultyPublisher, FaultyStore, ManualClock, Recorder};

use crate::seen::Seen;

/// The poll interval of every test that does not set one.
pub(crate) const POLL: Duration = Duration::from_millis(200);

/// Dropped at a test's end, it checks that no future of the store was dropped: whatever the test did.
pub(crate) struct Stage {
    pub(crate) clock: ManualClock,
    pub(crate) table: MemoryStore,
    /// The table with faults, as the relays see it.
    pub(crate) store: FaultyStore,
    /// What the relays publish to: a record of every attempt, with the faults behind it.
    pub(crate) recorder: Recorder,
    pub(crate) publisher: FaultyPublisher,
    /// What went through the faults: what a receiver got.
    pub(crate) broker: Recorder,
    pub(crate) seen: Seen,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::judged(|recorder| recorder)
    }

    /// A stage on which order is judged within each subject.
    pub(crate) fn by_subject() -> Self {
        Self::judged(Recorder::by_subject)
    }

    /// A stage on which no order is judged.
    pub(crate) fn unordered() -> Self {
        Self::judged(Recorder::unordered)
    }

    fn judged(judge: impl Fn(Recorder) -> Recorder) -> Self {
        let clock = ManualClock::new();
        let table = MemoryStore::new().with_clock(Arc::new(clock.clone()));
        let store = FaultyStore::new(table.clone(), Arc::new(clock.clone()));
        let broker = judge(Recorder::new());
        let publisher = FaultyPublisher::new(broker.clone(), Arc::new(clock.clone()));
        let recorder = judge(Recorder::around(publisher.clone()));
        Self { clock, table, store, recorder, publisher, broker, seen: Seen::default() }
    }

    /// A relay of whatever tenants there are.
    pub(crate) fn relay(&self) -> Relay {
        self.relay_with(config())
    }

    pub(crate) fn relay_with(&self, config: RelayConfigBuilder) -> Relay {
        self.relay_of(config, self.recorder.clone())
    }

    /// A relay that publishes in this way.
    pub(crate) fn relay_of(&self, config: RelayConfigBuilder, publishing: impl Into<Publishing>) -> Relay {
        self.builder(config, publishing).observer(self.seen.clone()).build().unwrap()
    }

    /// A relay with a publisher of the test's own, and no observer.
    pub(crate) fn builder(
        &self,
        config: RelayConfigBuilder,
        publishing: impl Into<Publishing>,
    ) -> RelayBuilder {
        let config = config.build().unwrap();
        Relay::builder(self.store.clone(), publishing, config).clock(Arc::new(self.clock.clone())).seed(7)
    }

    /// Commits so many messages of a tenant.
    pub(crate) fn write(&self, tenant: &str, count: usize) -> Vec<MessageId> {
        self.table.append_all((0..count).map(|_| message(tenant)))
    }

    /// Commits a message of a tenant about each of these subjects.
    pub(crate) fn write_about<'a>(
        &self,
        tenant: &str,
        subjects: impl IntoIterator<Item = &'a str>,
    ) -> Vec<MessageId> {
        let message = |subject: &str| NewMessage::new(self::tenant(tenant), "order.placed", subject, "{}");
        self.table.append_all(subjects.into_iter().map(message))
    }

    /// What is marked of a tenant.
    pub(crate) fn marked(&self, tenant: &str) -> Vec<MessageId> {
        let published = self.table.published().into_iter().map(|published| published.message);
        published.filter(|message| message.tenant_id.as_str() == tenant).map(|message| message.id).collect()
    }

    pub(crate) fn all_marked(&self) -> bool {
        let request = ProbeRequest::new(Tenants::Discovered);
        // The memory store answers at once.
        self.table.probe(&request).now_or_never().is_some_and(|found| found.unwrap().oldest.is_empty())
    }

    /// The ids whose publish started, in that order.
    pub(crate) fn tried(&self) -> Vec<MessageId> {
        self.recorder.deliveries().into_iter().map(|delivery| delivery.id).collect()
    }

    /// The attempts of every publish, in the order of their starts.
    pub(crate) fn attempts(&self) -> Vec<u32> {
        self.recorder.deliveries().into_iter().map(|delivery| delivery.attempt).collect()
    }

    /// Lets `duration` pass; whoever wakes meanwhile does so at its time.
    pub(crate) async fn pass(&self, duration: Duration) {
        let end = tokio::spawn(outbox_core::Clock::sleep(&self.clock, duration));
        loop {
            calm().await;
            if end.is_finished() {
                return;
            }
            self.clock.advance_to_next_sleeper().await;
        }
    }

    /// Lets time pass until something holds.
    ///
    /// # Panics
    /// If it never does.
    pub(crate) async fn until(&self, holds: impl Fn() -> bool) {
        for _ in 0..20_000 {
            for _ in 0..4 {
                if holds() {
                    return;
                }
                calm().await;
            }
            if self.clock.sleepers() > 0 {
                self.clock.advance_to_next_sleeper().await;
            }
        }
        panic!("it never came to it: {:?}", self.store);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.store.dropped(), [], "the relay dropped a future of the store");
        }
    }
}

/// Lets everybody run until nobody can go on without time.
pub(crate) async fn calm() {
    for _ in 0..24 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn config() -> RelayConfigBuilder {
    RelayConfig::builder().discover_tenants().poll_interval(POLL)
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub(crate) fn message(tenant_id: &str) -> NewMessage {
    NewMessage::new(tenant(tenant_id), "order.placed", "order-1", "{}")
}
