//! The relay: reads committed messages from a store, publishes them in order, marks what was accepted.
//!
//! The way of a turn by file: `run` (the loop) → `engine` (whose turn, and what follows from how it ends) → `turns` →
//! `sweep` (claim, deliver, settle) → `deliver` (the batch, in its shape). `turn` is what they hand each other;
//! `store_call` and `observe` are what they call the outside through.

mod blocking;
mod builder;
mod deliver;
mod drain;
mod engine;
mod error;
mod handle;
mod lines;
mod observe;
mod probe;
mod run;
mod shared;
mod stop;
mod store_call;
mod sweep;
mod tell;
mod turn;
mod turns;
mod waker;

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;

use self::shared::Shared;
use crate::{HealthCheck, Publishing, RelayConfig, Store};

pub use builder::RelayBuilder;
pub use engine::{DrainOutcome, DrainReport};
pub use error::RelayError;
pub use handle::RelayHandle;
pub use waker::RelayWaker;

/// Publishes a store's committed messages, tenant by tenant, each tenant's in id order, at least once.
///
/// Any number of relays may run on one table: they take turns, tenant by tenant. A clone is the same relay.
/// What it promises, law by law, is [the contract](crate::contract).
#[derive(Clone)]
pub struct Relay {
    shared: Arc<Shared>,
}

impl Relay {
    /// Begins to put a relay together. A publisher by itself is published to in order; the other ways are those of
    /// [`Publishing`]. A store or a publisher that others use too is handed over in an [`Arc`].
    pub fn builder(
        store: impl Store,
        publishing: impl Into<Publishing>,
        config: RelayConfig,
    ) -> RelayBuilder {
        RelayBuilder::new(Arc::new(store), publishing.into(), config)
    }

    /// Starts it in a task of its own.
    ///
    /// It may be started again after a stop, and more than once at a time: such runs take turns as replicas do.
    ///
    /// # Errors
    /// [`RelayError::NoRuntime`] outside of a tokio runtime, [`RelayError::NoTimer`] on one without a timer. An unreachable database is no error: the relay
    /// tries until it is there, and health says so meanwhile.
    ///
    /// # Cancellation
    /// Dropping the handle requests a stop; see [`RelayHandle`].
    pub fn start(&self) -> Result<RelayHandle, RelayError> {
        RelayHandle::start(Arc::clone(&self.shared))
    }

    /// Runs until `shutdown` ends, and stops then as [`RelayHandle::stop`] does.
    ///
    /// # Errors
    /// [`RelayError`], if there is no runtime, or if the relay's task died.
    ///
    /// # Cancellation
    /// Dropping the future requests a stop: no new claim is made, and what is in flight ends by itself within
    /// the stop's deadline.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) -> Result<(), RelayError> {
        let mut handle = self.start()?;
        tokio::select! {
            ended = handle.ended() => ended,
            () = shutdown => handle.stop().await,
        }
    }

    /// Publishes what is pending and ends when each tenant is empty, held elsewhere, or refused once.
    ///
    /// # Errors
    /// [`RelayError`], if there is no runtime, if the probe failed, or if the drain's task died.
    ///
    /// # Cancellation
    /// As for [`run`](Self::run).
    pub async fn drain(&self) -> Result<DrainReport, RelayError> {
        drain::drain(Arc::clone(&self.shared)).await
    }

    /// Looks for messages now instead of at the next poll. Call it after a commit in this process.
    ///
    /// It never blocks; calls that come close together count as one, and none is lost. It cuts no back-off short.
    pub fn wake(&self) {
        self.shared.wake.send_replace(());
    }

    /// What wakes this relay from elsewhere: a listener, or the application's writing side.
    pub fn waker(&self) -> RelayWaker {
        RelayWaker(self.shared.wake.clone())
    }

    /// This relay's health.
    pub fn health(&self) -> HealthCheck {
        self.shared.health.clone()
    }

    /// How many observers' panics were contained.
    pub fn observer_panics(&self) -> u64 {
        self.shared.observers.panics()
    }

    /// How many tenants are swept at the same time.
    pub fn concurrency(&self) -> NonZeroUsize {
        self.shared.concurrency
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay")
            .field("source", &self.shared.store.source())
            .field("publishing", &self.shared.publishing)
            .field("config", &self.shared.config)
            .field("state", &self.shared.board.relay())
            .finish_non_exhaustive()
    }
}
