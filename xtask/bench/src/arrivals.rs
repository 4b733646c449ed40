//! A publisher that notes when each message comes, by the clock that every process of this machine shares.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use outbox_core::{Accepted, Delivery, PublishError, Publisher};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

use super::stats::millis;

/// The time since the machine began.
pub(super) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// A message that was committed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) id: i64,
    /// When its commit was answered.
    pub(super) at: Duration,
}

/// Accepts every message and notes when it came. A clone is the same.
#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    seen: Arc<Mutex<Vec<(i64, Duration)>>>,
    count: Arc<watch::Sender<usize>>,
}

impl Arrivals {
    pub(super) fn new() -> Self {
        Self { seen: Arc::default(), count: Arc::new(watch::Sender::new(0)) }
    }

    /// Waits until as many have come.
    pub(super) async fn wait(&self, count: usize) -> Result<()> {
        let mut arrived = self.count.subscribe();
        let waiting = arrived.wait_for(|arrived| *arrived >= count);
        let arrived = tokio::time::timeout(Duration::from_mins(2), waiting).await;
        arrived.with_context(|| format!("{count} messages did not come within 2 minutes"))??;
        Ok(())
    }

    /// How long each took, in milliseconds, from the answer to its commit. Each came once, and in order.
    pub(super) fn latencies(&self, written: &[Written]) -> Result<Vec<f64>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(seen.is_sorted_by(|one, other| one.0 < other.0), "messages came out of order, or twice");
        let of = |written: &Written| {
            let place = seen.binary_search_by_key(&written.id, |(id, _)| *id).ok();
            let arrived = place.and_then(|place| seen.get(place));
            let (_, at) = arrived.with_context(|| format!("message {} did not come", written.id))?;
            // It can be published before its writer hears that it is committed.
            Ok(millis(at.saturating_sub(written.at)))
        };
        written.iter().map(of).collect()
    }
}

#[async_trait]
impl Publisher for Arrivals {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let arrived = (delivery.message.id.get(), now());
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(arrived);
        self.count.send_modify(|count| *count += 1);
        Ok(Accepted)
    }
}
