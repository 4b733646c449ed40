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
    first: i64,
    tenants: usize,
    /// Each message's place in the order of arrival, from 1.
    places: Vec<AtomicU32>,
    arrived: AtomicU32,
    strange: AtomicU32,
    complete: watch::Sender<bool>,
}

impl Ledger {
    /// Expects `count` messages with ids from `first` on, dealt out to the tenants in turn.
    pub(super) fn new(first: i64, count: usize, tenants: usize) -> Self {
        let places = std::iter::repeat_with(AtomicU32::default).take(count).collect();
        let (arrived, strange) = (AtomicU32::new(0), AtomicU32::new(0));
        let complete = watch::Sender::new(count == 0);
        Self { shared: Arc::new(Shared { first, tenants, places, arrived, strange, complete }) }
    }

    /// A message arrived.
    pub(super) fn record(&self, id: i64) {
        let Shared { first, places, arrived, strange, complete, .. } = &*self.shared;
        let place = arrived.fetch_add(1, Ordering::Relaxed) + 1;
        let slot = id.checked_sub(*first).and_then(|slot| usize::try_from(slot).ok());
        match slot.and_then(|slot| places.get(slot)) {
            Some(slot) if slot.swap(place, Ordering::Relaxed) == 0 => {}
            _ => _ = strange.fetch_add(1, Ordering::Relaxed),
        }
        if place as usize == places.len() {
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
        let Shared { places, arrived, strange, tenants, first, .. } = &*self.shared;
        let (arrived, strange) = (arrived.load(Ordering::Relaxed), strange.load(Ordering::Relaxed));
        ensure!(
            arrived as usize == places.len() && strange == 0,
            "{arrived} of {} messages were published, {strange} of them twice or unknown",
            places.len()
        );
        let mut last = vec![0; *tenants];
        for (number, place) in places.iter().enumerate() {
            let place = place.load(Ordering::Relaxed);
            if let Some(last) = last.get_mut(number % tenants) {
                let id = i64::try_from(number).unwrap_or_default() + first;
                ensure!(place > *last, "message {id} was published before a lower one of its tenant");
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
    store: &(impl Store + Clone),
    tenants: &[String],
    ledger: &Ledger,
    options: impl FnOnce(RelayConfigBuilder) -> RelayConfigBuilder,
) -> Result<()> {
    let config = options(RelayConfig::builder().tenants(tenants)).build()?;
    let relay = Relay::builder(store.clone(), ledger.clone(), config).build()?;
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
    }
}
