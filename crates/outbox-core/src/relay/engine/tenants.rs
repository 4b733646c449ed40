//! Whose turn is next: fair turns, back-off, growing batches.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use super::back_off::{Change, Pace};
use super::subjects::{SubjectChange, Subjects};
use crate::relay::turn::{Member, Sweep, SweepEnd, Tried};
use crate::{HeldSubject, MessageId, OldestPending, RelayConfig, TenantId};

/// After so many poll intervals of full batches a tenant leaves a gap.
const POLLS_BEFORE_GAP: u32 = 32;
/// How long a tenant that was found held waits at most, in quarters of the poll interval. The gap is as long, so that
/// another relay, which waits no longer, looks at the tenant once within it.
const HELD_QUARTERS: u32 = 5;
/// A claim that leaves subjects out walks past their rows. If it found nothing else, the tenant rests this many times
/// as long as the claim took.
const REST_FACTOR: u32 = 10;
/// A batch that takes longer than this part of its time bound does not grow.
const GROWTH_PART: u32 = 4;
/// By which factor a full batch grows. It grows if it took less than a quarter of its time bound, and so the next one
/// keeps within the bound.
const GROWTH: NonZeroU32 = NonZeroU32::new(4).unwrap();

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
    /// The message whose refusal it waits after.
    refused: Option<MessageId>,
    tried: Option<Tried>,
    batch: NonZeroU32,
    /// Since when its batches have been full, without a gap.
    full_since: Option<Duration>,
    /// Whether a turn of it ended after the probe under way had begun, which may not have seen what the turn saw.
    newer_than_probe: bool,
    subjects: Subjects,
}

/// What a turn that ended means for its tenant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) change: Change,
    pub(super) subjects: Vec<SubjectChange>,
    /// Whether it is in the queue again.
    pub(super) is_ready: bool,
}

/// A tenant for which a probe's answer is a relief.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Relief {
    pub(super) tenant: TenantId,
    /// Whether it had failed and is well again.
    pub(super) recovered: bool,
    /// Whether nothing of it is pending, and nothing is known of it any more.
    pub(super) forgotten: bool,
    /// Its subjects that were held back and are well again.
    pub(super) subjects: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Tenants {
    config: RelayConfig,
    pace: Pace,
    known: HashMap<TenantId, Tenant>,
    ready: VecDeque<TenantId>,
    waiting: BTreeSet<(Duration, TenantId)>,
    random: fastrand::Rng,
}

impl Tenants {
    pub(super) fn new(config: RelayConfig, pace: Pace, random: fastrand::Rng) -> Self {
        let (known, ready, waiting) = (HashMap::new(), VecDeque::new(), BTreeSet::new());
        Self { config, pace, known, ready, waiting, random }
    }

    /// A probe begins: what turns find out from now on is newer than its answer.
    pub(super) fn probe_begins(&mut self) {
        for tenant in self.known.values_mut() {
            tenant.newer_than_probe = false;
        }
    }

    /// A probe's answer: idle tenants that have something get a turn, and those that waited for a message which is
    /// gone. Those that have nothing are forgotten, and with them their failures.
    ///
    /// The round starts at a random tenant, so that replicas do not meet at each one.
    pub(super) fn probed(&mut self, oldest: &[OldestPending]) -> Vec<Relief> {
        let start = if oldest.is_empty() { 0 } else { self.random.usize(..oldest.len()) };
        let mut relieved = Vec::new();
        for found in oldest[start..].iter().chain(&oldest[..start]) {
            relieved.extend(self.relieve(found));
            self.make_ready(&found.tenant_id);
        }
        relieved.extend(self.forget_all_but(oldest));
        relieved
    }

    /// Nothing is left to wait for where the refused message is older than whatever is pending: another relay
    /// published it, or somebody took it away.
    fn relieve(&mut self, found: &OldestPending) -> Option<Relief> {
        let id = &found.tenant_id;
        let tenant = self.known.get_mut(id)?;
        if tenant.newer_than_probe || tenant.place == Place::Sweeping {
            return None;
        }
        let subjects = tenant.subjects.recover_below(found.id);
        let recovered = tenant.refused.take_if(|refused| *refused < found.id).is_some();
        if recovered {
            (tenant.failures, tenant.tried) = (0, None);
            // One whose wait is over stands in the queue already, and must not stand there twice.
            if let Place::Waiting(until) = tenant.place {
                tenant.place = Place::Idle;
                self.waiting.remove(&(until, id.clone()));
            }
        }
        let relief = Relief { tenant: id.clone(), recovered, forgotten: false, subjects };
        (recovered || !relief.subjects.is_empty()).then_some(relief)
    }

    fn forget_all_but(&mut self, oldest: &[OldestPending]) -> Vec<Relief> {
        let pending: HashSet<&TenantId> = oldest.iter().map(|found| &found.tenant_id).collect();
        let (mut forgotten, waiting) = (Vec::new(), &mut self.waiting);
        self.known.retain(|id, tenant| {
            let keep = pending.contains(id)
                || matches!(tenant.place, Place::Ready | Place::Sweeping)
                || tenant.newer_than_probe;
            if !keep {
                if let Place::Waiting(until) = tenant.place {
                    waiting.remove(&(until, id.clone()));
                }
                let subjects = std::mem::take(&mut tenant.subjects).into_recovered();
                let recovered = tenant.failures > 0;
                forgotten.push(Relief { tenant: id.clone(), recovered, forgotten: true, subjects });
            }
            keep
        });
        forgotten.sort_unstable_by(|one, other| one.tenant.cmp(&other.tenant));
        forgotten
    }

    fn make_ready(&mut self, id: &TenantId) {
        let batch = self.config.initial_batch;
        let fresh = || Tenant {
            place: Place::Idle,
            failures: 0,
            refused: None,
            tried: None,
            batch,
            full_since: None,
            newer_than_probe: false,
            subjects: Subjects::default(),
        };
        let tenant = self.known.entry(id.clone()).or_insert_with(fresh);
        if tenant.place == Place::Idle {
            tenant.place = Place::Ready;
            self.ready.push_back(id.clone());
        }
    }

    /// Those who have waited long enough join the queue.
    fn queue_due(&mut self, now: Duration) {
        while let Some((due, _)) = self.waiting.first()
            && *due <= now
            && let Some((_, id)) = self.waiting.pop_first()
        {
            if let Some(tenant) = self.known.get_mut(&id) {
                tenant.place = Place::Ready;
                self.ready.push_back(id);
            }
        }
    }

    /// The next tenant in turn; it is being swept from now on.
    pub(super) fn next(&mut self, now: Duration) -> Option<Member> {
        self.queue_due(now);
        loop {
            let id = self.ready.pop_front()?;
            if let Some(tenant) = self.known.get_mut(&id) {
                tenant.place = Place::Sweeping;
                let (excluded, failed) = tenant.subjects.begin(now);
                let (limit, tried) = (tenant.batch, tenant.tried);
                let after_failure = tenant.failures > 0;
                return Some(Member { tenant: id, limit, tried, after_failure, excluded, failed });
            }
        }
    }

    /// When the first of those that wait is due.
    pub(super) fn due(&self) -> Option<Duration> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// Whether nobody is in the queue.
    pub(super) fn nobody_is_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// The tenant's subjects that are held back.
    pub(super) fn held_subjects(&self, id: &TenantId) -> Vec<HeldSubject> {
        self.known.get(id).map(|tenant| tenant.subjects.told()).unwrap_or_default()
    }

    /// A tenant's turn ended.
    pub(super) fn finished(&mut self, now: Duration, id: &TenantId, sweep: &Sweep) -> Finished {
        // Ahead of this one, which may have another turn.
        self.queue_due(now);
        let Self { config, pace, random, .. } = self;
        let Some(tenant) = self.known.get_mut(id) else {
            return Finished { change: Change::None, subjects: Vec::new(), is_ready: false };
        };
        let subjects = if tenant.subjects.is_empty() && sweep.refusals.is_empty() {
            Vec::new()
        } else {
            tenant.subjects.finished(now, *pace, config, random, sweep)
        };
        let jitter = random.f64();
        tenant.newer_than_probe = true;
        let failed_before = tenant.failures > 0;
        if !matches!(sweep.end, SweepEnd::Held) {
            tenant.refused = None;
        }
        match &sweep.end {
            SweepEnd::Refused { tried, .. } => {
                (tenant.tried, tenant.refused) = (Some(*tried), Some(tried.message));
            }
            SweepEnd::Failed { tried, .. } => tenant.tried = *tried,
            SweepEnd::Clean { .. } | SweepEnd::OutOfTime => tenant.tried = None,
            SweepEnd::Held | SweepEnd::Interrupted => {}
        }
        let mut change = Change::None;
        let place = match &sweep.end {
            SweepEnd::Interrupted => Place::Idle,
            SweepEnd::Held => {
                let longest = config.poll_interval * HELD_QUARTERS / 4;
                Place::Waiting(now.saturating_add(longest.mul_f64(1.0 - jitter * 0.4)))
            }
            SweepEnd::Refused { .. } | SweepEnd::Failed { .. } => {
                tenant.failures = if sweep.settled > 0 { 1 } else { tenant.failures.saturating_add(1) };
                tenant.batch = config.initial_batch;
                tenant.full_since = None;
                let wait = pace.back_off(config, tenant.failures, jitter);
                change = Change::BackedOff { failures: tenant.failures, wait };
                Place::Waiting(now.saturating_add(wait))
            }
            SweepEnd::Clean { full, took } => tenant.clean(now, *pace, config, sweep, *full, *took),
            SweepEnd::OutOfTime => {
                tenant.failures = 0;
                tenant.batch = shrunk(tenant.batch, sweep.settled);
                tenant.again(now, *pace, config)
            }
        };
        if failed_before && tenant.failures == 0 {
            change = Change::Recovered;
        }
        let place = match (place, *pace) {
            (Place::Waiting(_), Pace::Once) => Place::Idle,
            (place, _) => place,
        };
        tenant.place = place;
        match place {
            Place::Ready => self.ready.push_back(id.clone()),
            Place::Waiting(until) => {
                self.waiting.insert((until, id.clone()));
            }
            Place::Idle | Place::Sweeping => {}
        }
        Finished { change, subjects, is_ready: place == Place::Ready }
    }
}

impl Tenant {
    /// The place after a batch that went out whole.
    fn clean(
        &mut self,
        now: Duration,
        pace: Pace,
        config: &RelayConfig,
        sweep: &Sweep,
        full: bool,
        took: Duration,
    ) -> Place {
        self.failures = 0;
        // A batch of refused subjects is left out of the next one.
        let more = full && (sweep.settled > 0 || !sweep.refusals.is_empty());
        if !more {
            self.full_since = None;
        }
        if more && took < config.max_batch_time / GROWTH_PART {
            self.batch = self.batch.saturating_mul(GROWTH).min(config.max_batch);
        } else if sweep.settled == 0 {
            self.batch = config.initial_batch;
        }
        let rest = sweep.claim_took.saturating_mul(REST_FACTOR);
        if more {
            self.again(now, pace, config)
        } else if sweep.settled == 0 && rest > config.poll_interval && self.subjects.are_left_out() {
            Place::Waiting(now.saturating_add(rest))
        } else {
            Place::Idle
        }
    }

    /// A tenant that has more is due again at once, behind the others; now and then it leaves a gap.
    fn again(&mut self, now: Duration, pace: Pace, config: &RelayConfig) -> Place {
        let since = *self.full_since.get_or_insert(now);
        let is_long = now.saturating_sub(since) >= config.poll_interval * POLLS_BEFORE_GAP;
        if is_long && pace == Pace::Steady {
            self.full_since = None;
            Place::Waiting(now.saturating_add(config.poll_interval * HELD_QUARTERS / 4))
        } else {
            Place::Ready
        }
    }
}

/// The next batch after one that was cut short by its time: what was published in it.
fn shrunk(batch: NonZeroU32, settled: usize) -> NonZeroU32 {
    let settled = u32::try_from(settled).unwrap_or(u32::MAX);
    NonZeroU32::new(settled).unwrap_or(NonZeroU32::MIN).min(batch)
}

#[cfg(test)]
mod tests;
