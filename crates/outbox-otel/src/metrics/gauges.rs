//! What is read when metrics are collected: the state that probes and notices leave behind.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use outbox_core::{Clock, OldestPending, TenantId, Timestamp};

use super::instruments::described;
use crate::names;

/// So many tenants that caught up are still reported, as zero; beyond, the series ends.
const MAX_CAUGHT_UP: usize = 1_000;

/// A tenant as its attribute names it; `None` is all tenants that have no attribute.
type Label = Option<Arc<str>>;

#[derive(Default)]
pub(super) struct Gauges(Mutex<State>);

#[derive(Default)]
struct State {
    source: Option<Arc<str>>,
    running: i64,
    /// When the last probe that succeeded began, by the monotonic clock, and the clock.
    probed: Option<(Duration, Arc<dyn Clock>)>,
    /// Oldest pending message of each label.
    ages: HashMap<Label, Duration>,
    /// Who backs off, under which label, after how many failures.
    failures: HashMap<TenantId, (Label, u32)>,
    /// The subjects that back off alone.
    subjects: HashSet<(TenantId, Box<str>)>,
    /// The labels that backed off once: they are reported as zero.
    recovered: HashSet<Label>,
    /// The database's clock less the relay's, in microseconds.
    offset: i64,
}

impl Gauges {
    /// The state behind the meter's gauges. They report as long as it lives.
    pub(super) fn register(meter: &Meter) -> Arc<Self> {
        let gauges = Arc::new(Self::default());
        register_f64(meter, names::PROBE_AGE, &gauges, |state, source, out| {
            if let Some((at, clock)) = &state.probed {
                out.observe(clock.monotonic().saturating_sub(*at).as_secs_f64(), &[source]);
            }
        });
        register_f64(meter, names::PENDING_AGE, &gauges, |state, source, out| {
            for (label, age) in &state.ages {
                out.observe(age.as_secs_f64(), &with_tenant(&source, label.as_ref()));
            }
        });
        register_u64(meter, names::TENANT_FAILURES, &gauges, |state, source, out| {
            for (label, failures) in state.failures_by_label() {
                out.observe(u64::from(failures), &with_tenant(&source, label.as_ref()));
            }
        });
        register_u64(meter, names::TENANTS_BACKING_OFF, &gauges, |state, source, out| {
            out.observe(state.failures.len() as u64, &[source]);
        });
        register_u64(meter, names::SUBJECTS_BACKING_OFF, &gauges, |state, source, out| {
            out.observe(state.subjects.len() as u64, &[source]);
        });
        register_u64(meter, names::RELAYS_RUNNING, &gauges, |state, source, out| {
            out.observe(state.running.try_into().unwrap_or(0), &[source]);
        });
        gauges
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_source(&self, source: &str) {
        let mut state = self.lock();
        if state.source.is_none() {
            state.source = Some(source.into());
        }
    }

    pub(super) fn started(&self, clock: &Arc<dyn Clock>) {
        let now = clock.monotonic();
        let mut state = self.lock();
        state.running += 1;
        state.probed.get_or_insert_with(|| (now, Arc::clone(clock)));
    }

    /// A run ended. What the last one knew of tenants is known no more.
    pub(super) fn ended(&self) {
        let mut state = self.lock();
        state.running -= 1;
        if state.running <= 0 {
            let running = 0;
            *state = State { source: state.source.take(), running, offset: state.offset, ..State::default() };
        }
    }

    pub(super) fn backed_off(&self, tenant: &TenantId, label: Label, failures: u32) {
        self.lock().failures.insert(tenant.clone(), (label, failures));
    }

    pub(super) fn recovered(&self, tenant: &TenantId) {
        let mut state = self.lock();
        if let Some((label, _)) = state.failures.remove(tenant)
            && state.recovered.len() < MAX_CAUGHT_UP
        {
            state.recovered.insert(label);
        }
    }

    pub(super) fn subject_backed_off(&self, tenant: &TenantId, subject: &str) {
        self.lock().subjects.insert((tenant.clone(), subject.into()));
    }

    pub(super) fn subject_recovered(&self, tenant: &TenantId, subject: &str) {
        self.lock().subjects.remove(&(tenant.clone(), subject.into()));
    }

    /// A probe's answer is here, after it took so long.
    pub(super) fn probed(
        &self,
        oldest: &[OldestPending],
        took: Duration,
        clock: &Arc<dyn Clock>,
        label: impl Fn(&TenantId) -> Label,
    ) {
        let mut ages: HashMap<Label, Duration> = HashMap::new();
        let mut unreadable: HashSet<Label> = HashSet::new();
        for found in oldest {
            let label = label(&found.tenant_id);
            match found.time {
                Some(time) => {
                    let age = ages.entry(label).or_default();
                    *age = time.age.max(*age);
                }
                // It has no age, and has not caught up either.
                None => drop(unreadable.insert(label)),
            }
        }
        let offset = offset(oldest, clock.now(), took);
        let mut state = self.lock();
        state.probed = Some((clock.monotonic().saturating_sub(took), Arc::clone(clock)));
        state.offset = offset.unwrap_or(state.offset);
        let caught_up = state.ages.drain().map(|(label, _)| label);
        let caught_up: Vec<Label> =
            caught_up.filter(|label| !ages.contains_key(label) && !unreadable.contains(label)).collect();
        if caught_up.len() <= MAX_CAUGHT_UP {
            ages.extend(caught_up.into_iter().map(|label| (label, Duration::ZERO)));
        }
        state.ages = ages;
    }

    /// How old something is by the database's clock, when the relay's shows `now`.
    pub(super) fn delay(&self, occurred_at: Timestamp, now: Timestamp) -> Duration {
        let now = now.as_micros().saturating_add(self.lock().offset);
        occurred_at.until(Timestamp::from_micros(now))
    }
}

impl State {
    fn failures_by_label(&self) -> HashMap<Label, u32> {
        let mut highest: HashMap<Label, u32> =
            self.recovered.iter().map(|label| (label.clone(), 0)).collect();
        for (label, failures) in self.failures.values() {
            let entry = highest.entry(label.clone()).or_default();
            *entry = (*failures).max(*entry);
        }
        highest
    }
}

/// The database's clock less ours: it stood at `occurred_at + age` in the middle of the probe. An age of zero
/// may be one that was cut off, and says nothing.
fn offset(oldest: &[OldestPending], now: Timestamp, took: Duration) -> Option<i64> {
    let time = oldest.iter().filter_map(|found| found.time).find(|time| !time.age.is_zero())?;
    let database = time.occurred_at.saturating_add(time.age).saturating_add(took / 2);
    database.as_micros().checked_sub(now.as_micros())
}

fn with_tenant(source: &KeyValue, label: Option<&Arc<str>>) -> Vec<KeyValue> {
    let tenant = label.map(|label| KeyValue::new(names::TENANT, Arc::clone(label)));
    std::iter::once(source.clone()).chain(tenant).collect()
}

type Report<T> = fn(&State, KeyValue, &dyn AsyncInstrument<T>);

fn register_f64(meter: &Meter, name: &'static str, gauges: &Arc<Gauges>, report: Report<f64>) {
    let (unit, meaning) = described(name);
    let gauge = meter.f64_observable_gauge(name).with_unit(unit).with_description(meaning);
    gauge.with_callback(callback(gauges, report)).build();
}

fn register_u64(meter: &Meter, name: &'static str, gauges: &Arc<Gauges>, report: Report<u64>) {
    let (unit, meaning) = described(name);
    let gauge = meter.u64_observable_gauge(name).with_unit(unit).with_description(meaning);
    gauge.with_callback(callback(gauges, report)).build();
}

/// A meter never forgets a callback: it holds the state weakly, and reports nothing once the relay is gone.
fn callback<T>(gauges: &Arc<Gauges>, report: Report<T>) -> impl Fn(&dyn AsyncInstrument<T>) + use<T> {
    let gauges: Weak<Gauges> = Arc::downgrade(gauges);
    move |out| {
        let Some(gauges) = gauges.upgrade() else { return };
        let state = gauges.lock();
        if let Some(source) = &state.source {
            report(&state, KeyValue::new(names::SOURCE, Arc::clone(source)), out);
        }
    }
}
