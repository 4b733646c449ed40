//! Whether the outbox keeps up: one probe, a verdict by tenant.

mod report;
mod tenant;
mod tenants;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;

use crate::clock::can_wait;
use crate::status::{Board, RelayState, TenantState};
use crate::text::with_causes;
use crate::{Clock, ProbeRequest, Probed, RelayConfig, Store, SystemClock, TenantId, Tenants};

pub use report::{HealthProblem, HealthReport};
pub use tenant::{TenantCondition, TenantHealth};
pub use tenants::TenantReports;
use tenants::sorted;

/// Checks an outbox: unhealthy when a tenant's oldest pending message is older than the tolerated lag, when the
/// store does not answer within the deadline, and when the relay that it belongs to does not run.
///
/// Made by [`Relay::health`](crate::Relay::health), or by [`new`](Self::new) where no relay runs. Cloning is
/// cheap, and clones share one check, as do all that a relay gives out.
#[derive(Clone)]
pub struct HealthCheck {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    tenants: Tenants,
    /// The named ones, sorted.
    named: Arc<[TenantId]>,
    max_lag: Duration,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    board: Option<Arc<Board>>,
    /// The check under way, or the last one.
    current: Mutex<Option<watch::Receiver<Option<HealthReport>>>>,
}

impl HealthCheck {
    /// A check of a store by itself, without a relay in this process. Of the options it takes the tenants, the tolerated
    /// lag and the health timeout. A store
    /// that others use too is handed over in an [`Arc`].
    pub fn new(store: impl Store, config: &RelayConfig) -> Self {
        Self::make(Arc::new(store), config, Arc::new(SystemClock::new()), None)
    }

    pub(crate) fn of_relay(
        store: Arc<dyn Store>,
        config: &RelayConfig,
        clock: Arc<dyn Clock>,
        board: Arc<Board>,
    ) -> Self {
        Self::make(store, config, clock, Some(board))
    }

    fn make(
        store: Arc<dyn Store>,
        config: &RelayConfig,
        clock: Arc<dyn Clock>,
        board: Option<Arc<Board>>,
    ) -> Self {
        let (tenants, max_lag, timeout) = (config.tenants.clone(), config.max_lag, config.health_timeout);
        let named = if let Tenants::Named(names) = &tenants { sorted(names) } else { Arc::default() };
        let current = Mutex::new(None);
        Self { shared: Arc::new(Shared { store, tenants, named, max_lag, timeout, clock, board, current }) }
    }

    /// Checks now. One check at a time runs against the database; who asks meanwhile gets its answer too.
    ///
    /// It answers within the health timeout, and never fails: what goes wrong is a problem in the report. An answer
    /// of the store that is older than the timeout, since this process stood still, counts as none.
    ///
    /// # Cancellation
    /// The check goes on in a task of its own; the next caller gets its answer.
    pub async fn check(&self) -> HealthReport {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return self.shared.report(Err(HealthProblem::Failed {
                reason: "a health check needs a tokio runtime".to_owned(),
            }));
        };
        if !can_wait(&*self.shared.clock) {
            let reason = "a health check needs a tokio runtime with a timer".to_owned();
            return self.shared.report(Err(HealthProblem::Failed { reason }));
        }
        let mut answer = {
            let mut current = self.shared.current.lock().unwrap_or_else(PoisonError::into_inner);
            match &*current {
                // Under way: nothing is there yet, and its task lives.
                Some(check) if check.has_changed().is_ok() && check.borrow().is_none() => check.clone(),
                _ => {
                    let (sender, receiver) = watch::channel(None);
                    let shared = Arc::clone(&self.shared);
                    runtime.spawn(async move {
                        let report = shared.check().await;
                        sender.send_replace(Some(report));
                    });
                    current.insert(receiver).clone()
                }
            }
        };
        let report = answer.wait_for(Option::is_some).await.ok().and_then(|report| report.clone());
        report.unwrap_or_else(|| {
            self.shared
                .report(Err(HealthProblem::Failed { reason: "the health check's task died".to_owned() }))
        })
    }
}

impl std::fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HealthCheck")
            .field("source", &self.shared.store.source())
            .field("tenants", &self.shared.tenants)
            .field("max_lag", &self.shared.max_lag)
            .finish_non_exhaustive()
    }
}

impl Shared {
    async fn check(&self) -> HealthReport {
        let request = ProbeRequest::new(self.tenants.clone()).with_timeout(self.timeout);
        let store = Arc::clone(&self.store);
        let probe = tokio::spawn(async move {
            let probe = AssertUnwindSafe(async { store.probe(&request).await }).catch_unwind().await;
            probe.unwrap_or_else(|_| {
                let operation = crate::StoreOperation::Probe;
                Err(crate::StoreError::permanent(operation, "the store panicked"))
            })
        });
        // The probe is not dropped at the deadline: it ends by itself, unheard. The deadline comes first: an answer that
        // is heard after it, since this process stood still, tells of the past.
        let answer = tokio::select! {
            biased;
            () = self.clock.sleep(self.timeout) => Err(HealthProblem::Silent { timeout: self.timeout }),
            answer = probe => match answer {
                Ok(Ok(found)) => Ok(found),
                Ok(Err(error)) => Err(HealthProblem::Failed { reason: with_causes(&error) }),
                Err(error) => Err(HealthProblem::Failed { reason: error.to_string() }),
            },
        };
        self.report(answer)
    }

    fn report(&self, answer: Result<Probed, HealthProblem>) -> HealthReport {
        let mut problems = Vec::new();
        let (relay, states) = match &self.board {
            Some(board) => (Some(board.relay()), board.tenants()),
            None => (None, std::collections::HashMap::new()),
        };
        if let Some(state) = relay
            && state != RelayState::Running
        {
            problems.push(HealthProblem::Relay { state });
        }
        let known = answer.is_ok();
        let mut tenants = TenantReports::new(Arc::clone(&self.named), known);
        match answer {
            Err(problem) => problems.push(problem),
            Ok(Probed { mut oldest, unfit, .. }) => {
                problems.extend(unfit.map(|reason| HealthProblem::Unfit { reason }));
                // Stores answer in an order of their own.
                oldest.sort_by(|one, other| one.tenant_id.cmp(&other.tenant_id));
                for found in oldest {
                    let entry = tenants.entry(found.tenant_id.clone());
                    entry.oldest = Some(found.id);
                    entry.lag = found.time.map(|time| time.age);
                    entry.behind = found.time.is_none_or(|time| time.age > self.max_lag);
                    let tenant = found.tenant_id;
                    match found.time {
                        None => problems.push(HealthProblem::Unreadable { tenant, message: found.id }),
                        Some(time) if time.age > self.max_lag => {
                            problems.push(HealthProblem::Behind { tenant, lag: time.age });
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        for (tenant, state) in states {
            // Without a probe's answer, what the relay last saw is all there is to say.
            if known && state == TenantState::HeldElsewhere && !tenants.contains(&tenant) {
                continue;
            }
            tenants.entry(tenant).state = state;
        }
        for (tenant, subjects) in self.board.iter().flat_map(|board| board.held_subjects()) {
            tenants.entry(tenant).held_subjects = subjects;
        }
        HealthReport { problems, relay, tenants }
    }
}
