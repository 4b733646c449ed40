//! The relay's loop: probe, give turns, learn from how they end, until it is told to stop.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};

use super::Shared;
use super::board::{Run as OnBoard, TenantState};
use super::lines::Lines;
use super::observe::{Observers, panic_text};
use super::schedule::{Change, Forgotten, Schedule, SubjectChange, back_off};
use super::stop::Stop;
use super::store_call::call;
use super::sweep::{Sweep, SweepEnd, Turn, sweep};
use crate::text::with_causes;
use crate::{Notice, OldestPending, Operation, Outcome, ProbeRequest, StoreError, StoreOperation, TenantId};

/// The longest rest after failed probes, or the poll interval if that is longer.
const MAX_PROBE_BACK_OFF: Duration = Duration::from_secs(5);

type ProbeAnswer = Result<Vec<OldestPending>, StoreError>;

/// One probe for all tenants of the relay.
pub(crate) async fn probe(shared: &Shared) -> ProbeAnswer {
    let timeout = shared.config.store_timeout;
    let request = ProbeRequest::new(shared.config.tenants.clone()).with_timeout(timeout);
    let watch = shared.observers.start(&Operation::probe(shared.store.source()));
    let store = Arc::clone(&shared.store);
    let answer =
        call(shared, StoreOperation::Probe, timeout, async move { store.probe(&request).await }).await;
    watch.end(&match &answer {
        Ok(oldest) => Outcome::Probed(oldest),
        Err(error) => Outcome::Failed(error),
    });
    answer
}

/// A turn whose every panic is contained: a fault of ours backs the tenant off and does not end the loop.
pub(crate) async fn contained_sweep(shared: Arc<Shared>, turn: Turn, stop: Stop) -> Sweep {
    AssertUnwindSafe(sweep(shared, turn, stop)).catch_unwind().await.unwrap_or_else(|panic| {
        let reason = format!("the sweep panicked: {}", panic_text(&*panic));
        let error = StoreError::permanent(StoreOperation::Claim, reason);
        Sweep::new(0, SweepEnd::Failed { error, tried: None })
    })
}

/// One run, until `stop`; ends when it holds nothing any more.
pub(crate) async fn run(shared: Arc<Shared>, stop: Stop, on_board: OnBoard) {
    let announced = Announced::begin(&shared.observers);
    Lines::started(shared.store.source());
    let mut run = Run::new(Arc::clone(&shared), stop);
    run.work().await;
    run.wind_down().await;
    run.lines.tell_all();
    Lines::stopped(shared.store.source());
    on_board.stopped();
    announced.stopped();
}

/// A run as observers know it: it died unless it says that it stopped.
struct Announced<'a> {
    observers: &'a Observers,
    stopped: bool,
}

impl<'a> Announced<'a> {
    fn begin(observers: &'a Observers) -> Self {
        observers.notice(&Notice::Started);
        Self { observers, stopped: false }
    }

    fn stopped(mut self) {
        self.stopped = true;
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.observers.notice(if self.stopped { &Notice::Stopped } else { &Notice::Died });
    }
}

struct Run {
    shared: Arc<Shared>,
    stop: Stop,
    schedule: Schedule,
    lines: Lines,
    random: fastrand::Rng,
    sweeps: JoinSet<Sweep>,
    /// Who is being swept, and how many wakes there had been when that began.
    swept: HashMap<Id, (TenantId, u64)>,
    wakes: u64,
    probe: Option<JoinHandle<ProbeAnswer>>,
    next_probe: Duration,
    failed_probes: u32,
}

impl Run {
    fn new(shared: Arc<Shared>, stop: Stop) -> Self {
        let mut random = shared.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let schedule = Schedule::new(shared.config.clone(), random.fork());
        let next_probe = shared.clock.monotonic();
        let (sweeps, swept) = (JoinSet::new(), HashMap::new());
        let lines = Lines::new(Arc::clone(&shared.clock));
        Self {
            shared,
            stop,
            schedule,
            lines,
            random,
            sweeps,
            swept,
            wakes: 0,
            probe: None,
            next_probe,
            failed_probes: 0,
        }
    }

    async fn work(&mut self) {
        let clock = Arc::clone(&self.shared.clock);
        let mut wake = self.shared.wake.subscribe();
        while !self.stop.requested() {
            let now = clock.monotonic();
            self.lines.tell_due(now);
            self.give_turns(now);
            if self.probe.is_none() && now >= self.next_probe {
                self.start_probe(now);
            }
            let free = self.sweeps.len() < self.shared.concurrency.get();
            let due = self.schedule.next_due().filter(|_| free);
            let poll = Some(self.next_probe).filter(|_| self.probe.is_none());
            let rest = due
                .into_iter()
                .chain(poll)
                .chain(self.lines.due())
                .min()
                .map(|next| next.saturating_sub(now));
            tokio::select! {
                biased;
                () = self.stop.wait() => {}
                Some(ended) = self.sweeps.join_next_with_id() => self.sweep_ended(ended),
                answer = async { self.probe.as_mut()?.await.ok() }, if self.probe.is_some() => {
                    self.probe = None;
                    self.probed(answer);
                }
                Ok(()) = wake.changed() => {
                    self.wakes += 1;
                    self.probe_now();
                }
                () = async { clock.sleep(rest.unwrap_or_default()).await }, if rest.is_some() => {}
            }
        }
    }

    /// Waits for what is in flight: the messages, up to the stop's deadline, and their settlements.
    async fn wind_down(&mut self) {
        let abort = self.stop.abort().clone();
        let mut deadline = self.shared.clock.sleep(self.shared.config.stop_timeout);
        let mut waiting = true;
        loop {
            tokio::select! {
                biased;
                ended = self.sweeps.join_next_with_id() => match ended {
                    Some(ended) => self.sweep_ended(ended),
                    None => break,
                },
                () = &mut deadline, if waiting => {
                    waiting = false;
                    abort.cancel();
                }
            }
        }
        if let Some(probe) = self.probe.take() {
            // Bounded by the store's deadline. Its answer concerns nobody any more.
            let _ = probe.await;
        }
    }

    fn give_turns(&mut self, now: Duration) {
        while self.sweeps.len() < self.shared.concurrency.get()
            && let Some(turn) = self.schedule.next_turn(now)
        {
            let tenant = turn.tenant.clone();
            self.shared.board.set_tenant(&tenant, TenantState::Sweeping);
            let task = contained_sweep(Arc::clone(&self.shared), turn, self.stop.clone());
            self.swept.insert(self.sweeps.spawn(task).id(), (tenant, self.wakes));
        }
    }

    /// Makes the next probe due. A failed one's back-off stands: a wake never cuts one short.
    fn probe_now(&mut self) {
        if self.failed_probes == 0 {
            self.next_probe = self.shared.clock.monotonic();
        }
    }

    fn start_probe(&mut self, now: Duration) {
        let shared = Arc::clone(&self.shared);
        self.schedule.probe_begins();
        self.next_probe = now.saturating_add(shared.config.poll_interval);
        self.probe = Some(tokio::spawn(async move { probe(&shared).await }));
    }

    fn probed(&mut self, answer: Option<ProbeAnswer>) {
        match answer {
            Some(Ok(oldest)) => {
                if std::mem::take(&mut self.failed_probes) > 0 {
                    Lines::probes_succeed();
                    self.shared.observers.notice(&Notice::ProbeRecovered);
                }
                for Forgotten { tenant, failed, subjects } in self.schedule.probed(&oldest) {
                    self.shared.board.set_tenant(&tenant, TenantState::Idle);
                    self.shared.board.set_held_subjects(&tenant, Vec::new());
                    for subject in &subjects {
                        self.subject_recovered(&tenant, subject);
                    }
                    if failed {
                        self.recovered(&tenant);
                    }
                }
            }
            Some(Err(error)) => self.probe_failed(&error),
            None => self.probe_failed(&StoreError::transient(StoreOperation::Probe, "the probe's task died")),
        }
    }

    fn probe_failed(&mut self, error: &StoreError) {
        self.failed_probes = self.failed_probes.saturating_add(1);
        if self.failed_probes == 1 {
            Lines::probes_fail(error);
            self.shared.observers.notice(&Notice::ProbeFailing { error });
        }
        let config = &self.shared.config;
        let ceiling = MAX_PROBE_BACK_OFF.max(config.poll_interval);
        let longest = back_off(config, self.failed_probes, 0.0).min(ceiling);
        let rest = longest.mul_f64(1.0 - self.random.f64() / 4.0);
        self.next_probe = self.shared.clock.monotonic().saturating_add(rest);
    }

    fn sweep_ended(&mut self, ended: Result<(Id, Sweep), JoinError>) {
        let (id, sweep) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let id = error.id();
                let error = StoreError::transient(StoreOperation::Claim, "the sweep's task was ended");
                (id, Sweep::new(0, SweepEnd::Failed { error, tried: None }))
            }
        };
        let Some((tenant, wakes)) = self.swept.remove(&id) else { return };
        if wakes < self.wakes {
            // What the wake told of may have been committed after this sweep had read.
            self.probe_now();
        }
        let now = self.shared.clock.monotonic();
        let changes = self.schedule.subjects_finished(now, &tenant, &sweep);
        if !changes.is_empty() {
            self.subjects_changed(&tenant, &changes, &sweep);
            self.shared.board.set_held_subjects(&tenant, self.schedule.held_subjects(&tenant));
        }
        let change = self.schedule.finished(now, &tenant, &sweep);
        let state = match sweep.end {
            SweepEnd::Held => TenantState::HeldElsewhere,
            SweepEnd::Refused { tried, reason } => {
                self.backed_off(&tenant, Some(tried.message), reason, change)
            }
            SweepEnd::Failed { error, .. } => self.backed_off(&tenant, None, with_causes(&error), change),
            _ => TenantState::Idle,
        };
        self.shared.board.set_tenant(&tenant, state);
        if change == Change::Recovered {
            self.recovered(&tenant);
        }
    }

    fn backed_off(
        &mut self,
        tenant: &TenantId,
        message: Option<crate::MessageId>,
        reason: String,
        change: Change,
    ) -> TenantState {
        let Change::BackedOff { failures, wait } = change else { return TenantState::Idle };
        self.lines.backed_off(tenant, message, failures, wait, &reason);
        let notice = Notice::BackedOff { tenant, message, failures, wait, reason: &reason };
        self.shared.observers.notice(&notice);
        TenantState::BackingOff { failures, wait, message, reason }
    }

    fn subjects_changed(&mut self, tenant: &TenantId, changes: &[SubjectChange], sweep: &Sweep) {
        for SubjectChange { subject, change } in changes {
            let refusal = sweep.refusals.iter().find(|refusal| refusal.subject == *subject);
            let notice = match (change, refusal) {
                (&Change::BackedOff { failures, wait }, Some(refusal)) => {
                    let (message, reason) = (refusal.tried.message, &*refusal.reason);
                    self.lines.held_back(tenant, subject, message, failures, wait, reason);
                    Notice::SubjectBackedOff { tenant, subject, message, failures, wait, reason }
                }
                (Change::Recovered, _) => {
                    self.subject_recovered(tenant, subject);
                    continue;
                }
                _ => continue,
            };
            self.shared.observers.notice(&notice);
        }
    }

    fn subject_recovered(&mut self, tenant: &TenantId, subject: &str) {
        self.lines.subject_recovered(tenant, subject);
        self.shared.observers.notice(&Notice::SubjectRecovered { tenant, subject });
    }

    fn recovered(&mut self, tenant: &TenantId) {
        self.lines.recovered(tenant);
        self.shared.observers.notice(&Notice::Recovered { tenant });
    }
}
