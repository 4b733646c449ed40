//! Putting a relay together.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::Relay;
use super::blocking::Blocking;
use super::observe::Observers;
use super::shared::Shared;
use crate::config::{ConfigError, ConfigProblem};
use crate::status::Board;
use crate::{Clock, HealthCheck, Observer, Publishing, RelayConfig, Store, SystemClock};

/// How many tenants are swept at the same time, unless the options say otherwise.
const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// A relay on its way: [`Relay::builder`].
pub struct RelayBuilder {
    store: Arc<dyn Store>,
    publishing: Publishing,
    config: RelayConfig,
    observers: Observers,
    clock: Option<Arc<dyn Clock>>,
    seed: Option<u64>,
}

impl RelayBuilder {
    pub(super) fn new(store: Arc<dyn Store>, publishing: Publishing, config: RelayConfig) -> Self {
        Self { store, publishing, config, observers: Observers::default(), clock: None, seed: None }
    }

    /// Adds an observer; each of several sees everything.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Sets the clock. Default: [`SystemClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Fixes the random numbers behind jitter and turns, for a test that wants the same run twice.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The relay, not yet started.
    ///
    /// # Errors
    /// [`ConfigError`] with every bad field: an option that was set out of its range after the configuration was made, a
    /// publishing with nothing in flight, or a concurrency above what the store can hold, which is one claim for each
    /// connection but one. A concurrency of 1 fits every store: with one connection, probe and claim take turns.
    pub fn build(self) -> Result<Relay, ConfigError> {
        let mut problems = self.config.problems();
        problems.extend(self.publishing.problems());
        let pool = self.store.max_claims();
        let room = pool.map(|pool| NonZeroUsize::new(pool.get() as usize - 1).unwrap_or(NonZeroUsize::MIN));
        let concurrency = match (self.config.concurrency, room, pool) {
            (Some(concurrency), Some(room), Some(pool)) if concurrency > room => {
                problems.push(ConfigProblem::ConcurrencyExceedsPool { concurrency, pool });
                concurrency
            }
            (Some(concurrency), ..) => concurrency,
            (None, Some(room), _) => room.min(DEFAULT_CONCURRENCY),
            (None, None, _) => DEFAULT_CONCURRENCY,
        };
        if !problems.is_empty() {
            return Err(ConfigError::new(problems));
        }
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let board = Arc::new(Board::default());
        let store = Arc::clone(&self.store);
        let health = HealthCheck::of_relay(store, &self.config, Arc::clone(&clock), Arc::clone(&board));
        Ok(Relay {
            shared: Arc::new(Shared {
                store: self.store,
                publishing: self.publishing,
                config: self.config,
                concurrency,
                observers: self.observers,
                blocking: Blocking::default(),
                clock,
                seed: self.seed,
                wake: tokio::sync::watch::Sender::new(()),
                board,
                health,
            }),
        })
    }
}

impl std::fmt::Debug for RelayBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayBuilder")
            .field("publishing", &self.publishing)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
