//! What a store remembers, shared by its clones.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outbox_core::{ClaimRequest, MessageId, OldestPending, TenantId};

use super::marks::{Mark, Marks};
use super::safe::{Safe, SafeAnswer};
use super::settings::Watermark;

/// The watermarks of one store.
#[derive(Debug)]
pub(crate) struct Watermarks {
    settings: Watermark,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often everything was forgotten: what began before that must not be remembered after it.
    generation: u64,
    safe: Safe,
    marks: Marks,
    /// When the safe id was last asked for; `None` as long as no answer came.
    asked_at: Option<Duration>,
    /// When that was which was answered last. The sequence may have been set back since.
    answered_at: Duration,
    /// How many messages were settled above it, or when it was too old, since.
    above: u64,
}

/// A question for the safe id. An answer counts for what was there when it was asked.
#[derive(Debug)]
#[must_use]
pub(crate) struct Asking {
    generation: u64,
    at: Duration,
    safe: Option<i64>,
    watching: Option<u64>,
}

/// Where the read of a claim begins, and what is known before it is sent.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Start {
    generation: u64,
    safe: Option<i64>,
    at: Duration,
    /// The watermark: the read begins with this id. `None` is from zero.
    pub(crate) from: Option<i64>,
}

/// Where a probe begins with each tenant.
#[derive(Debug)]
#[must_use]
pub(crate) struct ProbeStart {
    generation: u64,
    raises: u64,
    at: Duration,
    is_of_all: bool,
    /// The tenants that are looked for one by one; if all are, those whose first entries are passed over.
    pub(crate) tenants: Vec<TenantId>,
    /// Where each of them begins, in the same order.
    pub(crate) ids: Vec<i64>,
}

impl Watermarks {
    /// None yet.
    pub(crate) fn new(settings: Watermark) -> Self {
        Self { settings, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all. To be called at every error: perhaps marks were taken back.
    pub(crate) fn forget(&self) {
        self.state().forget();
    }

    /// Whether a claim should ask for the safe id before it reads. Only this one does then.
    pub(crate) fn asks(&self) -> Option<Asking> {
        let now = self.settings.clock.monotonic();
        let mut state = self.state();
        let is_time = state.asked_at.is_none_or(|asked_at| {
            state.above >= self.settings.worth.max(1)
                && now.saturating_sub(asked_at) >= self.settings.ask_every
        });
        is_time.then(|| {
            // While there was no answer, each claim asks: each has to be told if the table does not suit.
            if state.asked_at.is_some() {
                state.asked_at = Some(now);
            }
            let (safe, watching) = (state.safe.id(), state.safe.watching());
            Asking { generation: state.generation, at: now, safe, watching }
        })
    }

    /// Takes in what a table answered that suits.
    pub(crate) fn told(&self, asking: &Asking, answer: SafeAnswer) {
        let now = self.settings.clock.monotonic();
        let mut state = self.state();
        if asking.generation == state.generation {
            if answer.last < asking.safe {
                // The sequence was set back: all that is known is of other messages.
                state.forget();
            }
            (state.asked_at, state.answered_at) = (Some(now), asking.at);
            if state.safe.told(answer, asking.watching) {
                state.above = 0;
            }
        }
    }

    /// Where a claim of this tenant begins. To be called before its read is sent.
    pub(crate) fn start(&self, tenant: &TenantId) -> Start {
        let at = self.settings.clock.monotonic();
        let look_every = self.settings.look_every;
        let state = self.state();
        let is_old = at.saturating_sub(state.answered_at) >= look_every;
        let safe = state.safe.id().filter(|_| !is_old);
        let mark = state.marks.get(tenant).filter(|mark| !mark.is_due(at, look_every));
        Start { generation: state.generation, safe, at, from: mark.map(|mark| mark.id) }
    }

    /// Takes in the first id that a claim read. Says whether it has to be read again, from zero.
    pub(crate) fn read(&self, request: &ClaimRequest, start: &Start, first: Option<i64>) -> bool {
        if start.from.is_some_and(|from| first.is_some_and(|first| first <= from)) {
            // What had been settled is pending again.
            self.forget();
            return true;
        }
        let now = self.settings.clock.monotonic();
        let mut state = self.state();
        if start.generation != state.generation {
            return false;
        }
        let tenant = &request.tenant_id;
        if let Some(mark) = state.marks.get_mut(tenant) {
            if start.from.is_some() {
                if first.is_none() {
                    mark.due_since = Some(now);
                }
            } else if first.is_some_and(|first| first <= mark.id) {
                state.marks.remove(tenant);
            } else if request.excluded_subjects.is_empty() {
                mark.looked(start.at);
            }
        }
        false
    }

    /// Takes in what is known to be settled of a claim that left no subject out: the first of the messages that it
    /// handed out, without a gap.
    pub(crate) fn settled(&self, tenant: &TenantId, start: &Start, prefix: &[MessageId]) {
        let mut state = self.state();
        if start.generation != state.generation {
            return;
        }
        let final_ones = prefix.partition_point(|id| Some(id.get()) <= start.safe);
        state.above = state.above.saturating_add(length(prefix.len() - final_ones));
        if let Some(last) = final_ones.checked_sub(1).and_then(|last| prefix.get(last)) {
            let looked_at = start.from.is_none().then_some(start.at);
            state.marks.raise(tenant, last.get(), length(prefix.len()), looked_at);
        }
    }

    /// Where a probe begins, that looks for these tenants one by one, or for all. To be called before it is sent.
    pub(crate) fn start_probe(&self, named: Option<&[TenantId]>) -> ProbeStart {
        let at = self.settings.clock.monotonic();
        let state = self.state();
        let is_fresh = |mark: &Mark| !mark.is_due(at, self.settings.look_every);
        let (tenants, ids) = match named {
            Some(named) => {
                let id_of =
                    |tenant| state.marks.get(tenant).filter(|mark| is_fresh(mark)).map(|mark| mark.id);
                named.iter().map(|tenant| (tenant.clone(), id_of(tenant).unwrap_or(ProbeStart::ZERO))).unzip()
            }
            None => state
                .marks
                .iter()
                .filter(|(_, mark)| is_fresh(mark) && mark.settled >= self.settings.worth)
                .map(|(tenant, mark)| (tenant.clone(), mark.id))
                .unzip(),
        };
        let is_of_all = named.is_none();
        ProbeStart { generation: state.generation, raises: state.marks.raises, at, is_of_all, tenants, ids }
    }

    /// Takes in what a probe answered: it looked from zero at each tenant that it was asked for, and had no
    /// watermark of.
    pub(crate) fn probed(&self, start: &ProbeStart, answer: &[OldestPending]) {
        let now = self.settings.clock.monotonic();
        let mut state = self.state();
        if start.generation != state.generation {
            return;
        }
        let mut strays = HashSet::new();
        for oldest in answer {
            if let Some(mark) = state.marks.get_mut(&oldest.tenant_id)
                && oldest.id.get() <= mark.id
            {
                // If it was raised meanwhile, that may have been pending when the probe looked.
                if mark.raised <= start.raises {
                    mark.due_since = Some(now);
                }
                strays.insert(&oldest.tenant_id);
            }
        }
        let looked = |(tenant, mark): (&TenantId, &mut Mark)| {
            if !strays.contains(tenant) {
                mark.looked(start.at);
            }
        };
        let given = start.tenants.iter().zip(&start.ids);
        if start.is_of_all {
            let passed_over: HashSet<&TenantId> = given.map(|(tenant, _)| tenant).collect();
            state.marks.iter_mut().filter(|(tenant, _)| !passed_over.contains(tenant)).for_each(looked);
        } else {
            for (tenant, _) in given.filter(|(_, id)| **id == ProbeStart::ZERO) {
                if let Some(mark) = state.marks.get_mut(tenant) {
                    looked((tenant, mark));
                }
            }
        }
    }
}

impl State {
    fn forget(&mut self) {
        self.generation += 1;
        self.safe.forget();
        self.marks.forget();
        self.asked_at = None;
    }
}

impl ProbeStart {
    /// The lowest number, which begins with a tenant's first entry.
    const ZERO: i64 = i64::MIN;

    /// Whether it passes over anything: else the statement without watermarks does.
    pub(crate) fn passes_over(&self) -> bool {
        self.ids.iter().any(|id| *id != Self::ZERO)
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
