//! What all parts of a relay share.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::blocking::Blocking;
use super::observe::Observers;
use crate::status::Board;
use crate::{Clock, HealthCheck, Publishing, RelayConfig, Store};

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) publishing: Publishing,
    pub(crate) config: RelayConfig,
    pub(crate) concurrency: NonZeroUsize,
    pub(crate) observers: Observers,
    pub(crate) blocking: Blocking,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seed: Option<u64>,
    pub(crate) wake: tokio::sync::watch::Sender<()>,
    pub(crate) board: Arc<Board>,
    pub(crate) health: HealthCheck,
}

impl Shared {
    /// Where a run's random numbers come from.
    pub(crate) fn random(&self) -> fastrand::Rng {
        self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)
    }
}
