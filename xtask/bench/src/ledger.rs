//! The publisher of the bench: it accepts everything at once, and knows at the end whether it was right.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use outbox_core::{
    Accepted, Delivery, PublishError, Publisher, Relay, RelayConfig, RelayConfigBuilder, Store,
};
use tokio::sync::watch;

/// When each message came, by its id. Cheap: two atomic steps for a message. A clone is the same ledger.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// What is expected, in order.
    ids: Vec<i64>,
    tenants: usize,
    /// Each id's place in the order of arrival, from 1; the first slot is the first id's.
    places: Vec<AtomicU32>,
    arrived: AtomicU32,
    strange: AtomicU32,
    complete: watch::Sender<bool>,
}

impl Ledger {
    /// Expects `count` messages with ids from `first` on, dealt out to the tenants in turn.
    pub(super) fn new(first: i64, count: usize, tenants: usize) -> Self {
        Self::of((first..).take(count).collect(), tenants)
    }

    /// Expects messages with these ids, which rise, dealt out to the tenants in turn.
    pub(super) fn of(ids: Vec<i64>, tenants: usize) -> Self {
        let slots = ids.first().zip(ids.last()).map_or(0, |(first, last)| last - first + 1);
        let slots = usize::try_from(slots).unwrap_or_default();
        let places = std::iter::repeat_with(AtomicU32::default).take(slots).collect();
        let (arrived, strange) = (AtomicU32::new(0), AtomicU32::new(0));
        let complete = watch::Sender::new(ids.is_empty());
        Self { shared: Arc::new(Shared { ids, tenants, places, arrived, strange, complete }) }
    }

    /// Where an id's place is noted.
    fn place(&self, id: i64) -> Option<&AtomicU32> {
        let slot = id.checked_sub(*self.shared.ids.first()?)?;
        self.shared.places.get(usize::try_from(slot).ok()?)
    }

    /// A message arrived.
    pub(super) fn record(&self, id: i64) {
        let Shared { ids, arrived, strange, complete, .. } = &*self.shared;
        let place = arrived.fetch_add(1, Ordering::Relaxed) + 1;
        match self.place(id) {
            Some(slot) if slot.swap(place, Ordering::Relaxed) == 0 => {}
            _ => _ = strange.fetch_add(1, Ordering::Relaxed),
        }
        if place as usize == ids.len() {
            complete.send_replace(true);
        }
    }

    /// Waits until as many have arrived as are expected.
    pub(super) async fn wait(&self) {
        // The sender lives as long as this ledger: the wait cannot fail.
        let _ = self.shared.complete.subscribe().wait_for(|complete| *complete).await;
    }

    /// Whether as many have arrived as are expected.
    pub(super) fn is_complete(&self) -> bool {
        *self.shared.complete.borrow()
    }

    /// Checks that each message came exactly once, and each tenant's in the order of the ids.
    pub(super) fn check(&self) -> Result<()> {
        let Shared { ids, arrived, strange, tenants, .. } = &*self.shared;
        let (arrived, strange) = (arrived.load(Ordering::Relaxed), strange.load(Ordering::Relaxed));
        ensure!(
            arrived as usize == ids.len() && strange == 0,
            "{arrived} of {} messages were published, {strange} of them twice or unknown",
            ids.len()
        );
        let mut last = vec![0; *tenants];
        for (number, id) in ids.iter().enumerate() {
            let place = self.place(*id).map_or(0, |place| place.load(Ordering::Relaxed));
            if let Some(last) = last.get_mut(number % tenants) {
                ensure!(place > *last, "message {id} was published before a lower one of its tenant, or not");
                *last = place;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Publisher for Ledger {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.record(delivery.message.id.get());
        Ok(Accepted)
    }
}

/// Runs a relay on a store until the ledger has everything and it is marked, then checks the order.
pub(super) async fn publish(
    store: Arc<dyn Store>,
    tenants: &[String],
    ledger: &Ledger,
    options: impl FnOnce(RelayConfigBuilder) -> RelayConfigBuilder,
) -> Result<()> {
    let config = options(RelayConfig::builder().tenants(tenants)).build()?;
    let relay = Relay::builder(store, ledger.clone(), config).build()?;
    let running = relay.start()?;
    let complete = tokio::time::timeout(Duration::from_mins(5), ledger.wait()).await;
    // Marks what was published last.
    running.stop().await?;
    complete.context("the relay did not publish everything within 5 minutes")?;
    ledger.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(ids: &[i64]) -> Result<()> {
        let ledger = Ledger::new(10, 4, 2);
        for id in ids {
            ledger.record(*id);
        }
        ledger.check()
    }

    /// A run that lost, repeated or swapped messages of a tenant, or published one that is not of it, fails.
    #[test]
    fn a_wrong_run_fails() {
        assert!(ledger(&[10, 11, 12, 13]).is_ok());
        assert!(ledger(&[11, 13, 10, 12]).is_ok(), "tenants have no order between them");
        assert!(ledger(&[10, 11, 12]).is_err());
        assert!(ledger(&[10, 11, 12, 13, 13]).is_err());
        assert!(ledger(&[10, 11, 12, 12]).is_err());
        assert!(ledger(&[12, 11, 10, 13]).is_err());
        assert!(ledger(&[10, 11, 12, 14]).is_err());
        let gaps = Ledger::of(vec![10, 20], 1);
        gaps.record(10);
        gaps.record(15);
        assert!(gaps.check().is_err(), "15 was never written");
    }
}
