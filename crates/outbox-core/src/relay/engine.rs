//! What the relay does next, decided from what happened: events in, effects out. No clock, no task, no I/O, and
//! nothing that two runs with one seed would decide differently.

mod back_off;
mod drain;
mod probes;
mod subjects;
mod tenants;

use std::collections::BTreeMap;
use std::time::Duration;

use self::back_off::{Change, Pace};
use self::drain::Drain;
use self::probes::Probes;
use self::subjects::SubjectChange;
use self::tenants::{Finished, Relief, Tenants};
use super::error::RelayError;
use super::turn::{Sweep, SweepEnd, Turn, TurnId};
use crate::status::TenantState;
use crate::text::with_causes;
use crate::{HeldSubject, MessageId, Probed, RelayConfig, StoreError, StoreOperation, TenantId};

pub use self::drain::{DrainOutcome, DrainReport};

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// Time passed: something may be due.
    Due,
    /// Somebody says that there are new messages.
    Woken,
    /// The probe's answer.
    Probed(Result<Probed, StoreError>),
    /// A turn ended: how, for each of its members.
    TurnEnded(TurnId, Vec<Sweep>),
    /// A turn's task ended without saying how.
    TurnDied(TurnId, RelayError),
    /// A stop was requested: no further turn, no further probe.
    Stop,
}

/// Something to be done, in this order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Look for each tenant's oldest message.
    Probe,
    /// Give this turn.
    Turn(Turn),
    /// Health says this of a tenant from now on.
    Status(TenantId, TenantState),
    /// Health says from now on that these subjects of a tenant are held back.
    Held(TenantId, Vec<HeldSubject>),
    /// Tell the observers, and the log.
    Tell(News),
}

/// A change of state, for observers and the log.
#[derive(Debug, Clone)]
pub(crate) enum News {
    BackedOff { tenant: TenantId, message: Option<MessageId>, failures: u32, wait: Duration, reason: String },
    Recovered { tenant: TenantId },
    SubjectBackedOff { tenant: TenantId, subject: HeldSubject },
    SubjectRecovered { tenant: TenantId, subject: String },
    ProbesFail { error: std::sync::Arc<StoreError> },
    ProbesRecovered,
    AnotherServer,
}

/// What follows from an event.
#[derive(Debug)]
#[must_use]
pub(crate) struct Step {
    pub(crate) effects: Vec<Effect>,
    /// When time alone makes something due.
    pub(crate) due: Option<Duration>,
}

/// The relay's decisions. In a relay it goes on until it is stopped; in a drain it probes once, tries nothing twice,
/// says nothing, and has a report in the end.
#[derive(Debug)]
pub(crate) struct Engine {
    config: RelayConfig,
    concurrency: usize,
    tenants: Tenants,
    probes: Probes,
    /// The turns that were given and have not ended.
    turns: BTreeMap<TurnId, UnderWay>,
    last_turn: TurnId,
    wakes: u64,
    stopping: bool,
    drain: Option<Drain>,
    effects: Vec<Effect>,
}

#[derive(Debug)]
struct UnderWay {
    tenants: Vec<TenantId>,
    /// How many wakes there had been when it began.
    wakes: u64,
}

impl Engine {
    /// The engine of a relay.
    pub(crate) fn new(config: RelayConfig, concurrency: usize, now: Duration, random: fastrand::Rng) -> Self {
        Self::at(Pace::Steady, config, concurrency, now, random)
    }

    /// The engine of a drain.
    pub(crate) fn draining(
        config: RelayConfig,
        concurrency: usize,
        now: Duration,
        random: fastrand::Rng,
    ) -> Self {
        let drain = Some(Drain::of(&config.tenants));
        Self { drain, ..Self::at(Pace::Once, config, concurrency, now, random) }
    }

    fn at(
        pace: Pace,
        config: RelayConfig,
        concurrency: usize,
        now: Duration,
        mut random: fastrand::Rng,
    ) -> Self {
        let tenants = Tenants::new(config.clone(), pace, random.fork());
        let probes = Probes::new(pace, now, random);
        let (turns, last_turn, effects) = (BTreeMap::new(), TurnId(0), Vec::new());
        let (wakes, stopping, drain) = (0, false, None);
        Self { config, concurrency, tenants, probes, turns, last_turn, wakes, stopping, drain, effects }
    }

    /// Takes an event in, and says what follows from it.
    pub(crate) fn handle(&mut self, event: Event, now: Duration) -> Step {
        match event {
            Event::Due => {}
            Event::Woken => {
                self.wakes += 1;
                self.probes.want(now);
            }
            Event::Probed(answer) => self.probed(answer, now),
            Event::TurnEnded(turn, sweeps) => self.turn_ended(turn, sweeps, now),
            Event::TurnDied(turn, error) => self.turn_died(turn, error, now),
            Event::Stop => self.stopping = true,
        }
        if !self.stopping {
            self.give_turns(now);
            if self.probes.begin(now, &self.config) {
                self.tenants.probe_begins();
                self.effects.push(Effect::Probe);
            }
        }
        Step { effects: std::mem::take(&mut self.effects), due: self.due() }
    }

    /// Whether nothing is under way and nothing will be any more.
    pub(crate) fn is_over(&self) -> bool {
        let nothing_to_come = self.stopping || (self.probes.is_over() && self.tenants.nobody_is_ready());
        let failed = self.drain.as_ref().is_some_and(Drain::has_failed);
        failed || (nothing_to_come && self.turns.is_empty() && !self.probes.is_under_way())
    }

    /// What a drain found out; nothing of a relay.
    pub(crate) fn end(self) -> Result<DrainReport, RelayError> {
        self.drain.unwrap_or_default().end()
    }

    fn due(&self) -> Option<Duration> {
        if self.stopping {
            return None;
        }
        let waiting = self.tenants.due().filter(|_| self.turns.len() < self.concurrency);
        waiting.into_iter().chain(self.probes.due()).min()
    }

    /// An effect that a drain does not have.
    fn push_unless_draining(&mut self, effect: Effect) {
        if self.drain.is_none() {
            self.effects.push(effect);
        }
    }

    fn give_turns(&mut self, now: Duration) {
        while self.turns.len() < self.concurrency
            && let Some(member) = self.tenants.next(now)
        {
            self.push_unless_draining(Effect::Status(member.tenant.clone(), TenantState::Sweeping));
            self.last_turn = TurnId(self.last_turn.0 + 1);
            let under_way = UnderWay { tenants: vec![member.tenant.clone()], wakes: self.wakes };
            self.turns.insert(self.last_turn, under_way);
            self.effects.push(Effect::Turn(Turn { id: self.last_turn, members: vec![member] }));
        }
    }

    fn probed(&mut self, answer: Result<Probed, StoreError>, now: Duration) {
        match answer {
            Err(error) => {
                let is_first = self.probes.failed(now, &self.config);
                match &mut self.drain {
                    Some(drain) => drain.failed(RelayError::Store(error)),
                    None if is_first => {
                        self.push_unless_draining(Effect::Tell(News::ProbesFail { error: error.into() }));
                    }
                    None => {}
                }
            }
            Ok(Probed { oldest, server, .. }) => {
                let recovered = self.probes.succeeded();
                // Once a stop was requested, the answer concerns nobody any more.
                if self.stopping {
                    return;
                }
                if recovered {
                    self.push_unless_draining(Effect::Tell(News::ProbesRecovered));
                }
                if self.probes.is_another(server) {
                    self.push_unless_draining(Effect::Tell(News::AnotherServer));
                }
                if let Some(drain) = &mut self.drain {
                    drain.found(&oldest);
                }
                for relief in self.tenants.probed(&oldest) {
                    self.relieved(relief);
                }
            }
        }
    }

    fn relieved(&mut self, relief: Relief) {
        let Relief { tenant, recovered, forgotten, subjects } = relief;
        if recovered || forgotten {
            self.push_unless_draining(Effect::Status(tenant.clone(), TenantState::Idle));
        }
        if forgotten || !subjects.is_empty() {
            let held = self.tenants.held_subjects(&tenant);
            self.push_unless_draining(Effect::Held(tenant.clone(), held));
        }
        for subject in subjects {
            self.push_unless_draining(Effect::Tell(News::SubjectRecovered {
                tenant: tenant.clone(),
                subject,
            }));
        }
        if recovered {
            self.push_unless_draining(Effect::Tell(News::Recovered { tenant }));
        }
    }

    fn turn_died(&mut self, turn: TurnId, error: RelayError, now: Duration) {
        if let Some(drain) = &mut self.drain {
            drain.failed(error);
            return;
        }
        let died = || {
            let error = StoreError::transient(StoreOperation::Claim, "the sweep's task was ended");
            Sweep::nothing(SweepEnd::Failed { error, tried: None })
        };
        let members = self.turns.get(&turn).map_or(0, |under_way| under_way.tenants.len());
        self.turn_ended(turn, (0..members).map(|_| died()).collect(), now);
    }

    fn turn_ended(&mut self, turn: TurnId, sweeps: Vec<Sweep>, now: Duration) {
        let Some(UnderWay { tenants, wakes }) = self.turns.remove(&turn) else { return };
        if wakes < self.wakes {
            // What the wake told of may have been committed after this turn had read.
            self.probes.want(now);
        }
        for (tenant, sweep) in tenants.into_iter().zip(sweeps) {
            let finished = self.tenants.finished(now, &tenant, &sweep);
            match &mut self.drain {
                Some(drain) => drain.finished(&tenant, sweep, finished.is_ready),
                None => self.finished(tenant, finished, sweep.end),
            }
        }
    }

    fn finished(&mut self, tenant: TenantId, finished: Finished, end: SweepEnd) {
        let Finished { change, subjects, .. } = finished;
        if !subjects.is_empty() {
            let held = self.tenants.held_subjects(&tenant);
            self.push_unless_draining(Effect::Held(tenant.clone(), held.clone()));
            for SubjectChange { subject, change } in subjects {
                let tenant = tenant.clone();
                if change == Change::Recovered {
                    self.push_unless_draining(Effect::Tell(News::SubjectRecovered { tenant, subject }));
                } else if let Some(subject) = held.iter().find(|held| held.subject_id == subject).cloned() {
                    self.push_unless_draining(Effect::Tell(News::SubjectBackedOff { tenant, subject }));
                }
            }
        }
        let (message, reason) = match end {
            SweepEnd::Refused { tried, reason } => (Some(tried.message), reason),
            SweepEnd::Failed { error, .. } => (None, with_causes(&error)),
            SweepEnd::Held => {
                self.push_unless_draining(Effect::Status(tenant, TenantState::HeldElsewhere));
                return;
            }
            _ => (None, String::new()),
        };
        if let Change::BackedOff { failures, wait } = change {
            let state = TenantState::BackingOff { failures, wait, message, reason: reason.clone() };
            self.push_unless_draining(Effect::Status(tenant.clone(), state));
            self.push_unless_draining(Effect::Tell(News::BackedOff {
                tenant,
                message,
                failures,
                wait,
                reason,
            }));
            return;
        }
        self.push_unless_draining(Effect::Status(tenant.clone(), TenantState::Idle));
        if change == Change::Recovered {
            self.push_unless_draining(Effect::Tell(News::Recovered { tenant }));
        }
    }
}

#[cfg(test)]
mod tests;
