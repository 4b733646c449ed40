//! What a health check says.

use std::fmt;
use std::time::Duration;

use crate::text::{name, words};
use crate::{MessageId, RelayState, TenantId, TenantReports};

/// So many problems are in the line; the report has them all.
const TOLD: usize = 20;

/// What a health check found. `Display` is one line: `healthy`, or the first 20 problems and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthReport {
    /// What is wrong; empty is healthy.
    pub problems: Vec<HealthProblem>,
    /// Whether the relay works; `None` for a check that belongs to none.
    pub relay: Option<RelayState>,
    /// Each tenant that is named, has something pending, or that the relay is busy with.
    pub tenants: TenantReports,
}

impl HealthReport {
    /// The check's name among an application's: `outbox`.
    pub const NAME: &'static str = "outbox";

    /// Whether nothing is wrong.
    pub fn is_healthy(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for HealthReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_healthy() {
            return f.write_str("healthy");
        }
        for (index, problem) in self.problems.iter().take(TOLD).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{problem}")?;
        }
        match self.problems.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HealthProblem {
    /// A tenant's oldest pending message is older than the tolerated lag.
    #[error("{} is {} ms behind", name(tenant.as_str()), lag.as_millis())]
    Behind {
        /// Which tenant.
        tenant: TenantId,
        /// How old the message is.
        lag: Duration,
    },
    /// A tenant's oldest pending message does not say how old it is.
    #[error("{} is stopped by message {message}, whose time cannot be read", name(tenant.as_str()))]
    Unreadable {
        /// Which tenant.
        tenant: TenantId,
        /// Which message.
        message: MessageId,
    },
    /// The check failed.
    #[error("{}", words(reason))]
    Failed {
        /// How.
        reason: String,
    },
    /// The server may not be the one that applications write to. Claims go on.
    #[error("{}", words(reason))]
    Unfit {
        /// Why.
        reason: String,
    },
    /// The store did not answer in time.
    #[error("the database did not answer within {} ms", timeout.as_millis())]
    Silent {
        /// The health timeout.
        timeout: Duration,
    },
    /// The relay does not work.
    #[error("the relay is {state}")]
    Relay {
        /// What it is instead.
        state: RelayState,
    },
}
