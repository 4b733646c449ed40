//! Whose turn is next: fair turns, back-off, growing batches. No time and no task of its own, so that every
//! rule can be tested as it stands.

mod subjects;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use super::sweep::{Sweep, SweepEnd, Tried, Turn};
use crate::{HeldSubject, OldestPending, RelayConfig, TenantId};

pub(crate) use subjects::SubjectChange;
use subjects::Subjects;

/// After so many poll intervals of full batches a tenant leaves a gap.
const POLLS_BEFORE_GAP: u32 = 32;
/// How long a tenant that was found held waits at most, in quarters of the poll interval. The gap is as long:
/// whoever waits for the tenant looks at it once in there.
const HELD_QUARTERS: u32 = 5;
/// A claim that leaves subjects out walks past their rows. One that found nothing else is not made again before
/// so many times as long as it took.
const REST_FACTOR: u32 = 10;
/// A batch that takes longer than this part of its time bound does not grow.
const GROWTH_PART: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing to do until a probe says so.
    Idle,
    /// In the queue.
    Ready,
    /// Not before this time.
    Waiting(Duration),
    Sweeping,
}

#[derive(Debug)]
struct Tenant {
    place: Place,
    failures: u32,
    tried: Option<Tried>,
    batch: NonZeroU32,
    /// Since when its batches have been full, without a gap.
    full_since: Option<Duration>,
    /// Whether a turn of it ended after the probe under way had begun, which may not have seen what the turn saw.
    newer_than_probe: bool,
    subjects: Subjects,
}

/// What the relay does to a tenant after its turn, as far as others want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    BackedOff { failures: u32, wait: Duration },
    Recovered,
}

/// A tenant that has nothing pending any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Forgotten {
    pub(crate) tenant: TenantId,
    /// Whether it had failed.
    pub(crate) failed: bool,
    /// Its subjects that were held back.
    pub(crate) subjects: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Schedule {
    config: RelayConfig,
    tenants: HashMap<TenantId, Tenant>,
    ready: VecDeque<TenantId>,
    waiting: BTreeSet<(Duration, TenantId)>,
    random: fastrand::Rng,
}

impl Schedule {
    pub(crate) fn new(config: RelayConfig, random: fastrand::Rng) -> Self {
        let (tenants, ready, waiting) = (HashMap::new(), VecDeque::new(), BTreeSet::new());
        Self { config, tenants, ready, waiting, random }
    }

    /// A probe begins: what turns find out from now on is newer than its answer.
    pub(crate) fn probe_begins(&mut self) {
        for tenant in self.tenants.values_mut() {
            tenant.newer_than_probe = false;
        }
    }

    /// A probe's answer: idle tenants that have something get a turn. Those that have nothing are forgotten,
    /// and with them their failures; they are the answer.
    ///
    /// The round starts at a random tenant, so that replicas do not meet at each one.
    pub(crate) fn probed(&mut self, oldest: &[OldestPending]) -> Vec<Forgotten> {
        let start = if oldest.is_empty() { 0 } else { self.random.usize(..oldest.len()) };
        for found in oldest[start..].iter().chain(&oldest[..start]) {
            self.make_ready(&found.tenant_id);
        }
        let pending: HashSet<&TenantId> = oldest.iter().map(|found| &found.tenant_id).collect();
        let (mut forgotten, waiting) = (Vec::new(), &mut self.waiting);
        self.tenants.retain(|id, tenant| {
            let keep = pending.contains(id)
                || matches!(tenant.place, Place::Ready | Place::Sweeping)
                || tenant.newer_than_probe;
            if !keep {
                if let Place::Waiting(until) = tenant.place {
                    waiting.remove(&(until, id.clone()));
                }
                let subjects = std::mem::take(&mut tenant.subjects).into_recovered();
                forgotten.push(Forgotten { tenant: id.clone(), failed: tenant.failures > 0, subjects });
            }
            keep
        });
        forgotten
    }

    fn make_ready(&mut self, id: &TenantId) {
        let batch = self.config.initial_batch;
        let fresh = || Tenant {
            place: Place::Idle,
            failures: 0,
            tried: None,
            batch,
            full_since: None,
            newer_than_probe: false,
            subjects: Subjects::default(),
        };
        let tenant = self.tenants.entry(id.clone()).or_insert_with(fresh);
        if tenant.place == Place::Idle {
            tenant.place = Place::Ready;
            self.ready.push_back(id.clone());
        }
    }

    /// The next tenant in turn; it is being swept from now on.
    pub(crate) fn next_turn(&mut self, now: Duration) -> Option<Turn> {
        while let Some((due, _)) = self.waiting.first()
            && *due <= now
            && let Some((_, id)) = self.waiting.pop_first()
        {
            if let Some(tenant) = self.tenants.get_mut(&id) {
                tenant.place = Place::Ready;
                self.ready.push_back(id);
            }
        }
        loop {
            let id = self.ready.pop_front()?;
            if let Some(tenant) = self.tenants.get_mut(&id) {
                tenant.place = Place::Sweeping;
                let (excluded, failed) = tenant.subjects.begin(now);
                let (limit, tried) = (tenant.batch, tenant.tried);
                let after_failure = tenant.failures > 0;
                return Some(Turn { tenant: id, limit, tried, after_failure, excluded, failed });
            }
        }
    }

    /// When the first of those that wait is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// What a turn that ended says of the tenant's subjects. To be asked before [`finished`](Self::finished).
    pub(crate) fn subjects_finished(
        &mut self,
        now: Duration,
        id: &TenantId,
        sweep: &Sweep,
    ) -> Vec<SubjectChange> {
        let Some(tenant) = self.tenants.get_mut(id) else { return Vec::new() };
        if tenant.subjects.is_empty() && sweep.refusals.is_empty() {
            return Vec::new();
        }
        tenant.subjects.finished(now, &self.config, &mut self.random, sweep)
    }

    /// The tenant's subjects that are held back.
    pub(crate) fn held_subjects(&self, id: &TenantId) -> Vec<HeldSubject> {
        self.tenants.get(id).map(|tenant| tenant.subjects.told()).unwrap_or_default()
    }

    /// A tenant's turn ended.
    pub(crate) fn finished(&mut self, now: Duration, id: &TenantId, sweep: &Sweep) -> Change {
        let jitter = self.random.f64();
        let Some(tenant) = self.tenants.get_mut(id) else { return Change::None };
        tenant.newer_than_probe = true;
        let failed_before = tenant.failures > 0;
        match &sweep.end {
            SweepEnd::Refused { tried, .. } => tenant.tried = Some(*tried),
            SweepEnd::Failed { tried, .. } => tenant.tried = *tried,
            SweepEnd::Clean { .. } | SweepEnd::OutOfTime => tenant.tried = None,
            SweepEnd::Held | SweepEnd::Interrupted => {}
        }
        let (place, change) = match &sweep.end {
            SweepEnd::Interrupted => (Place::Idle, Change::None),
            SweepEnd::Held => {
                let longest = self.config.poll_interval * HELD_QUARTERS / 4;
                let rest = longest.mul_f64(1.0 - jitter * 0.4);
                (Place::Waiting(now.saturating_add(rest)), Change::None)
            }
            SweepEnd::Refused { .. } | SweepEnd::Failed { .. } => {
                tenant.failures = if sweep.settled > 0 { 1 } else { tenant.failures.saturating_add(1) };
                tenant.batch = self.config.initial_batch;
                tenant.full_since = None;
                let wait = back_off(&self.config, tenant.failures, jitter);
                let change = Change::BackedOff { failures: tenant.failures, wait };
                (Place::Waiting(now.saturating_add(wait)), change)
            }
            SweepEnd::Clean { full, took } => {
                tenant.failures = 0;
                // A batch of refused subjects is left out of the next one.
                let more = *full && (sweep.settled > 0 || !sweep.refusals.is_empty());
                if !more {
                    tenant.full_since = None;
                }
                if more && *took < self.config.max_batch_time / GROWTH_PART {
                    tenant.batch = tenant.batch.saturating_mul(GROWTH).min(self.config.max_batch);
                } else if sweep.settled == 0 {
                    tenant.batch = self.config.initial_batch;
                }
                let place = match sweep.claim_took.saturating_mul(REST_FACTOR) {
                    _ if more => again(&self.config, now, tenant),
                    rest if sweep.settled == 0
                        && rest > self.config.poll_interval
                        && tenant.subjects.are_left_out() =>
                    {
                        Place::Waiting(now.saturating_add(rest))
                    }
                    _ => Place::Idle,
                };
                (place, Change::None)
            }
            SweepEnd::OutOfTime => {
                tenant.failures = 0;
                tenant.batch = shrunk(tenant.batch, sweep.settled);
                (again(&self.config, now, tenant), Change::None)
            }
        };
        let recovered = failed_before && tenant.failures == 0;
        tenant.place = place;
        match place {
            Place::Ready => self.ready.push_back(id.clone()),
            Place::Waiting(until) => {
                self.waiting.insert((until, id.clone()));
            }
            Place::Idle | Place::Sweeping => {}
        }
        if recovered { Change::Recovered } else { change }
    }
}

/// A tenant that has more is due again at once, behind the others; now and then it leaves a gap.
fn again(config: &RelayConfig, now: Duration, tenant: &mut Tenant) -> Place {
    let since = *tenant.full_since.get_or_insert(now);
    if now.saturating_sub(since) >= config.poll_interval * POLLS_BEFORE_GAP {
        tenant.full_since = None;
        Place::Waiting(now.saturating_add(config.poll_interval * HELD_QUARTERS / 4))
    } else {
        Place::Ready
    }
}

/// The next batch after one that was cut short by its time: what was published in it.
pub(crate) fn shrunk(batch: NonZeroU32, settled: usize) -> NonZeroU32 {
    let settled = u32::try_from(settled).unwrap_or(u32::MAX);
    NonZeroU32::new(settled).unwrap_or(NonZeroU32::MIN).min(batch)
}

/// By what a batch grows that came back full. One that took less than a quarter of its time bound keeps to it then.
pub(crate) const GROWTH: NonZeroU32 = NonZeroU32::new(4).unwrap();

/// The n-th failure in a row waits poll x 2^n, at most the ceiling; `jitter` (0 to 1) takes up to a quarter
/// off and never adds.
pub(crate) fn back_off(config: &RelayConfig, failures: u32, jitter: f64) -> Duration {
    let factor = 1_u32.checked_shl(failures.min(31)).unwrap_or(u32::MAX);
    let wait = config.poll_interval.saturating_mul(factor).min(config.max_back_off);
    wait.mul_f64(1.0 - jitter / 4.0)
}

#[cfg(test)]
mod tests;
