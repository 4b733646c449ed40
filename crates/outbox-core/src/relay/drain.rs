//! Publishing what is pending, once, and saying what came of it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::handle::{died, runtime};
use super::publishing::Refusal;
use super::run::{contained_sweep, probe};
use super::schedule::{GROWTH, shrunk};
use super::stop::{Stop, StopOnDrop};
use super::sweep::{Sweep, SweepEnd, Turn};
use super::{RelayError, Shared};
use crate::text::with_causes;
use crate::{ClaimRequest, MessageId, RelayConfig, TenantId, Tenants};

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
    /// The drain was told to stop.
    Interrupted,
}

pub(super) async fn drain(shared: Arc<Shared>) -> Result<DrainReport, RelayError> {
    let runtime = runtime(&shared)?;
    let stop = StopOnDrop(Stop::default());
    runtime.spawn(drain_all(shared, stop.0.clone())).await.map_err(died)?
}

async fn drain_all(shared: Arc<Shared>, stop: Stop) -> Result<DrainReport, RelayError> {
    let oldest = probe(&shared).await.map_err(RelayError::Store)?;
    let mut report = DrainReport::default();
    if let Tenants::Named(names) = &shared.config.tenants {
        report.tenants.extend(names.iter().map(|tenant| (tenant.clone(), DrainOutcome::Empty)));
    }
    let limit = shared.config.initial_batch;
    let mut ready: VecDeque<Turn> =
        oldest.into_iter().map(|found| Turn::new(found.tenant_id, limit)).collect();
    let mut refused: HashMap<TenantId, DrainOutcome> = HashMap::new();
    let (mut sweeps, mut swept) = (JoinSet::new(), HashMap::new());
    let mut deadline = std::pin::pin!(async {
        stop.wait().await;
        shared.clock.sleep(shared.config.stop_timeout).await;
    });
    let mut waiting = true;
    loop {
        while sweeps.len() < shared.concurrency.get()
            && let Some(turn) = ready.pop_front()
        {
            let task = contained_sweep(Arc::clone(&shared), turn.clone(), stop.clone());
            swept.insert(sweeps.spawn(task).id(), turn);
        }
        let ended = tokio::select! {
            biased;
            ended = sweeps.join_next_with_id() => ended,
            () = &mut deadline, if waiting => {
                waiting = false;
                stop.abort().cancel();
                continue;
            }
        };
        let Some(ended) = ended else { return Ok(report) };
        let (id, sweep) = ended.map_err(died)?;
        report.published += sweep.settled as u64;
        if let Some(turn) = swept.remove(&id) {
            if let Some(Refusal { tried, reason, .. }) = sweep.refusals.first() {
                let first = DrainOutcome::Refused { message: tried.message, reason: reason.clone() };
                refused.entry(turn.tenant.clone()).or_insert(first);
            }
            if let Some(next) = next_turn(&turn, &sweep, &shared.config) {
                ready.push_back(next);
            } else {
                let outcome = match (outcome(sweep), refused.remove(&turn.tenant)) {
                    (DrainOutcome::Empty, Some(refused)) => refused,
                    (outcome, _) => outcome,
                };
                report.tenants.insert(turn.tenant, outcome);
            }
        }
    }
}

/// The tenant's next turn, if there is more: without the subjects that were refused.
fn next_turn(turn: &Turn, sweep: &Sweep, config: &RelayConfig) -> Option<Turn> {
    let limit = next_limit(turn, sweep, config)?;
    let refused = sweep.refusals.iter().map(|refusal| &refusal.subject);
    let excluded: Arc<[String]> = turn.excluded.iter().chain(refused).cloned().collect();
    let room = excluded.len() <= ClaimRequest::MAX_EXCLUDED_SUBJECTS;
    room.then(|| Turn { limit, excluded, ..turn.clone() })
}

/// How large the tenant's next batch is.
fn next_limit(turn: &Turn, sweep: &Sweep, config: &RelayConfig) -> Option<NonZeroU32> {
    match sweep.end {
        SweepEnd::Clean { full: true, .. } if sweep.settled > 0 || !sweep.refusals.is_empty() => {
            Some(turn.limit.saturating_mul(GROWTH).min(config.max_batch))
        }
        SweepEnd::OutOfTime => Some(shrunk(turn.limit, sweep.settled)),
        _ => None,
    }
}

fn outcome(sweep: Sweep) -> DrainOutcome {
    match sweep.end {
        SweepEnd::Clean { .. } | SweepEnd::OutOfTime => DrainOutcome::Empty,
        SweepEnd::Held => DrainOutcome::HeldElsewhere,
        SweepEnd::Refused { tried, reason } => DrainOutcome::Refused { message: tried.message, reason },
        SweepEnd::Failed { error, .. } => DrainOutcome::Failed { reason: with_causes(&error) },
        SweepEnd::Interrupted => DrainOutcome::Interrupted,
    }
}
