//! What can be wrong with the relay's options.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::TENANTS_VARIABLE;
use crate::text::name;
use crate::{InvalidTenantId, TenantId};

/// Every bad field at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<ConfigProblem>,
}

impl ConfigError {
    pub(crate) fn new(problems: Vec<ConfigProblem>) -> Self {
        Self { problems }
    }

    /// What is wrong, field by field; never empty.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the outbox relay's configuration is not usable: ")?;
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// One bad field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// No tenant is named.
    #[error("no tenants: set {TENANTS_VARIABLE}, name them in code, or let them be discovered")]
    NoTenants,
    /// A tenant's name is none.
    #[error("tenant number {place} of the list: {source}")]
    InvalidTenant {
        /// Its place in the list, from 1.
        place: usize,
        /// What is wrong with it.
        source: InvalidTenantId,
    },
    /// A tenant is named twice.
    #[error("tenant \"{}\" is in the list more than once", name(tenant.as_str()))]
    DuplicateTenant {
        /// Which.
        tenant: TenantId,
    },
    /// A variable's value is not Unicode.
    #[error("{variable} is not valid Unicode")]
    NotUnicode {
        /// Which variable.
        variable: &'static str,
    },
    /// A variable's value is not a whole number.
    #[error("{variable} must be a whole number of milliseconds, but is \"{}\"", name(value))]
    NotANumber {
        /// Which variable.
        variable: &'static str,
        /// What it holds.
        value: String,
    },
    /// A duration is out of its range.
    #[error("{field} must be {}, but is {value:?}", DurationRange(range))]
    Duration {
        /// Which option.
        field: &'static str,
        /// What it was set to.
        value: Duration,
        /// What it may be.
        range: RangeInclusive<Duration>,
    },
    /// A number that must be at least 1 is 0.
    #[error("{field} must be at least 1")]
    Zero {
        /// Which option.
        field: &'static str,
    },
    /// A batch begins larger than it may grow.
    #[error("initial_batch ({initial}) must not be larger than max_batch ({max})")]
    BatchOrder {
        /// What `initial_batch` was set to.
        initial: NonZeroU32,
        /// What `max_batch` was set to.
        max: NonZeroU32,
    },
    /// The store cannot hold so many claims beside a probe.
    #[error(
        "a concurrency of {concurrency} needs a pool of at least {} connections, this store's has {pool}: \
         lower the concurrency or enlarge the pool",
        concurrency.get().saturating_add(1)
    )]
    ConcurrencyExceedsPool {
        /// What `concurrency` was set to.
        concurrency: NonZeroUsize,
        /// How many connections the pool has at most.
        pool: NonZeroU32,
    },
}

struct DurationRange<'a>(&'a RangeInclusive<Duration>);

impl fmt::Display for DurationRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.0.start().as_millis(), *self.0.end());
        if most == Duration::MAX {
            write!(f, "at least {least} ms")
        } else {
            write!(f, "{least} to {} ms", most.as_millis())
        }
    }
}
