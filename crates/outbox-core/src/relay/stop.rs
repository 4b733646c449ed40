//! How a relay is told to stop: softly first, then for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// Seen by every sweep of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// The same as `soft`: asked before every message, and the token takes a lock.
    requested: Arc<AtomicBool>,
    soft: CancellationToken,
    abort: CancellationToken,
}

impl Stop {
    /// No new claim, no further message.
    pub(crate) fn request(&self) {
        self.requested.store(true, Ordering::Release);
        self.soft.cancel();
    }

    pub(crate) fn requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Ends when a stop is requested.
    pub(crate) async fn wait(&self) {
        self.soft.cancelled().await;
    }

    /// Fires when the messages in flight are not waited for any longer.
    pub(crate) fn abort(&self) -> &CancellationToken {
        &self.abort
    }
}

/// Requests the stop when it is dropped.
#[derive(Debug)]
pub(crate) struct StopOnDrop(pub(crate) Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}
