//! The relay's options: their defaults, their bounds, and where they come from.

mod builder;
mod problem;

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::Tenants;

pub use builder::RelayConfigBuilder;
pub use problem::{ConfigError, ConfigProblem};

/// The environment variable with the tenants: comma-separated, spaces around an item are dropped.
pub const TENANTS_VARIABLE: &str = "OUTBOX_TENANTS";
/// The environment variable with the poll interval in milliseconds.
pub const POLL_VARIABLE: &str = "OUTBOX_POLL_MS";
/// The environment variable with the tolerated lag in milliseconds.
pub const MAX_LAG_VARIABLE: &str = "OUTBOX_MAX_LAG_MS";

const ANY_DURATION: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::MAX;
const POLL_RANGE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);

/// The relay's options, checked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelayConfig {
    /// Which tenants the relay serves. No default.
    pub tenants: Tenants,
    /// How long after one probe's start the next one starts; a probe that takes longer is followed at once. A wake
    /// brings the next probe forward. Default 200 ms; 1 to 60,000 ms.
    pub poll_interval: Duration,
    /// How old a tenant's oldest pending message may be before health says so. Default 60 s; at least 1 ms.
    pub max_lag: Duration,
    /// How many tenants are swept at the same time. Default 4, or one less than the store's pool has
    /// connections if that is fewer; at least 1. A store that keeps a connection for each claim needs a pool
    /// of its own with two connections more: one for the probe, one for health.
    pub concurrency: Option<NonZeroUsize>,
    /// How many messages a claim asks for at first, after a failure and after an empty sweep. Default 32.
    pub initial_batch: NonZeroU32,
    /// Up to how many messages a claim's size grows, fourfold each time, while batches come back full. Default 1,000.
    pub max_batch: NonZeroU32,
    /// About how many bytes a claim asks for, as [`OutboxMessage::size`](crate::OutboxMessage::size) counts them. Default
    /// 16 MiB.
    pub max_batch_bytes: usize,
    /// After how long a batch is cut short between two messages, so that no claim lives for long behind a slow
    /// publisher. Default 1 s.
    pub max_batch_time: Duration,
    /// After how long a publish counts as refused; its future is dropped then. Default 30 s.
    pub publish_timeout: Duration,
    /// How long a store's operation may take. The store gives up then; the relay waits a quarter of a second longer
    /// for what it says. Default 30 s.
    pub store_timeout: Duration,
    /// How long a stop waits for the messages being published. Default 10 s; may be zero.
    pub stop_timeout: Duration,
    /// The longest back-off after failures in a row; the poll interval, if that is longer. Default 30 s.
    pub max_back_off: Duration,
    /// After how long a health check calls the database silent. Default 5 s.
    pub health_timeout: Duration,
}

impl RelayConfig {
    /// Begins with the defaults.
    pub fn builder() -> RelayConfigBuilder {
        RelayConfigBuilder::default()
    }

    /// Reads the three environment variables and takes the defaults for the rest.
    ///
    /// # Errors
    /// [`ConfigError`] with every bad field.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::builder().build_from_env()
    }

    /// As [`from_env`](Self::from_env), with a look-up of your own in place of the environment.
    ///
    /// # Errors
    /// [`ConfigError`] with every bad field.
    pub fn from_lookup(lookup: impl FnMut(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::builder().build_from_lookup(lookup)
    }

    /// The longest back-off in a row, as it counts.
    pub(crate) fn longest_back_off(&self) -> Duration {
        self.max_back_off.max(self.poll_interval)
    }

    /// What is out of its range. The fields are public: the relay asks once more when it is built.
    pub(crate) fn problems(&self) -> Vec<ConfigProblem> {
        let durations = [
            ("poll_interval", self.poll_interval, POLL_RANGE),
            ("max_lag", self.max_lag, ANY_DURATION),
            ("max_batch_time", self.max_batch_time, ANY_DURATION),
            ("publish_timeout", self.publish_timeout, ANY_DURATION),
            ("store_timeout", self.store_timeout, ANY_DURATION),
            ("max_back_off", self.max_back_off, ANY_DURATION),
            ("health_timeout", self.health_timeout, ANY_DURATION),
        ];
        let mut problems = Vec::new();
        for (field, value, range) in durations {
            if !range.contains(&value) {
                problems.push(ConfigProblem::Duration { field, value, range });
            }
        }
        if self.initial_batch > self.max_batch {
            problems.push(ConfigProblem::BatchOrder { initial: self.initial_batch, max: self.max_batch });
        }
        if self.max_batch_bytes == 0 {
            problems.push(ConfigProblem::Zero { field: "max_batch_bytes" });
        }
        problems
    }
}

#[cfg(test)]
mod tests;
