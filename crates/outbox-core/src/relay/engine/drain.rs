//! What a drain finds out: it tries each tenant until that is empty, held elsewhere, or refused once.

use std::collections::{BTreeMap, HashMap};

use crate::relay::error::RelayError;
use crate::relay::turn::{Refusal, Sweep, SweepEnd};
use crate::text::with_causes;
use crate::{MessageId, OldestPending, TenantId, Tenants};

/// What a drain did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// How many messages were published and marked.
    pub published: u64,
    /// What came of each tenant.
    pub tenants: BTreeMap<TenantId, DrainOutcome>,
}

impl DrainReport {
    /// Whether every tenant is empty.
    pub fn is_complete(&self) -> bool {
        self.tenants.values().all(|outcome| *outcome == DrainOutcome::Empty)
    }
}

/// What came of a tenant in a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrainOutcome {
    /// It has no pending message that the drain saw.
    Empty,
    /// Another relay holds it.
    HeldElsewhere,
    /// A message was refused; it and those after it, of its tenant or of its subject alone, are pending. Of
    /// several subjects that were refused, it is the first one's.
    #[non_exhaustive]
    Refused {
        /// Which.
        message: MessageId,
        /// Why.
        reason: String,
    },
    /// The store failed.
    #[non_exhaustive]
    Failed {
        /// How.
        reason: String,
    },
    /// The drain was told to stop before it was through with the tenant.
    Interrupted,
}

/// A drain on its way to its report.
#[derive(Debug, Default)]
pub(super) struct Drain {
    report: DrainReport,
    /// What was refused of tenants that go on without it.
    refused: HashMap<TenantId, DrainOutcome>,
    error: Option<RelayError>,
}

impl Drain {
    pub(super) fn of(tenants: &Tenants) -> Self {
        let mut drain = Self::default();
        if let Tenants::Named(names) = tenants {
            let unseen = names.iter().map(|tenant| (tenant.clone(), DrainOutcome::Interrupted));
            drain.report.tenants.extend(unseen);
        }
        drain
    }

    /// These are the tenants that have something; the others are empty. A tenant is interrupted if a stop comes before
    /// its turn.
    pub(super) fn found(&mut self, oldest: &[OldestPending]) {
        self.report.tenants.values_mut().for_each(|outcome| *outcome = DrainOutcome::Empty);
        let found = oldest.iter().map(|found| (found.tenant_id.clone(), DrainOutcome::Interrupted));
        self.report.tenants.extend(found);
    }

    /// A tenant's turn ended; `is_ready`, if it has another.
    pub(super) fn finished(&mut self, tenant: &TenantId, sweep: Sweep, is_ready: bool) {
        self.report.published += sweep.settled as u64;
        if let Some(Refusal { tried, reason, .. }) = sweep.refusals.first() {
            let first = DrainOutcome::Refused { message: tried.message, reason: reason.clone() };
            self.refused.entry(tenant.clone()).or_insert(first);
        }
        if is_ready {
            return;
        }
        let outcome = match (outcome(sweep.end), self.refused.remove(tenant)) {
            (DrainOutcome::Empty, Some(refused)) => refused,
            (outcome, _) => outcome,
        };
        self.report.tenants.insert(tenant.clone(), outcome);
    }

    /// It cannot go on.
    pub(super) fn failed(&mut self, error: RelayError) {
        self.error.get_or_insert(error);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn end(self) -> Result<DrainReport, RelayError> {
        self.error.map_or(Ok(self.report), Err)
    }
}

fn outcome(end: SweepEnd) -> DrainOutcome {
    match end {
        SweepEnd::Clean { .. } | SweepEnd::OutOfTime => DrainOutcome::Empty,
        SweepEnd::Held => DrainOutcome::HeldElsewhere,
        SweepEnd::Refused { tried, reason } => DrainOutcome::Refused { message: tried.message, reason },
        SweepEnd::Failed { error, .. } => DrainOutcome::Failed { reason: with_causes(&error) },
        SweepEnd::Interrupted => DrainOutcome::Interrupted,
    }
}
