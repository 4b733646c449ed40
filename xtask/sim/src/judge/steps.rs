//! What must hold after each step, and in the end.

use std::time::Duration;

use outbox_core::{
    DrainOutcome, DrainReport, HealthProblem, HealthReport, RelayError, RelayState, TenantState,
};

use crate::ledger::State;
use crate::replica::{Life, Place};
use crate::world::World;

/// How much longer than the store a relay waits for its answer.
const GRACE: Duration = Duration::from_millis(250);

impl World {
    /// After each step, when everybody has gone as far as they can.
    pub(crate) fn judge_step(&mut self) {
        for replica in 0..self.replicas.len() {
            if !self.replicas[replica].is_alive() {
                continue;
            }
            self.judge_told(replica);
            self.judge_probes(replica);
            if self.is_caught_up(replica) {
                self.judge_places(replica);
                self.judge_deadlines(replica);
            }
        }
    }

    /// No due tenant waits while there is a place.
    fn judge_places(&mut self, replica: usize) {
        let of = &self.replicas[replica];
        if !of.is_working() || of.turns >= self.setting.concurrency {
            return;
        }
        let due = |of: &crate::replica::TenantOf| of.due_since(self.now);
        let waits = of.tenants.iter().enumerate().find_map(|(tenant, of)| Some((tenant, due(of)?)));
        if let Some((tenant, since)) = waits {
            self.broke("no due tenant waits while there is a place", |world| {
                format!("{} of relay {replica}, since {since:?}", world.setting.tenants[tenant])
            });
        }
    }

    /// A publish and a stop end by their deadlines.
    fn judge_deadlines(&mut self, replica: usize) {
        let config = &self.setting.config;
        let late = self.ledger.open.iter().find_map(|claim| {
            let claim = &self.ledger.claims[*claim];
            let mut places = claim.states.iter().zip(&claim.begun_at).zip(&claim.messages);
            let is_late = |begun: Duration| begun + config.publish_timeout <= self.now;
            places
                .find(|((state, begun), _)| **state == State::InFlight && is_late(**begun))
                .filter(|_| claim.replica == replica)
                .map(|(_, id)| *id)
        });
        if let Some(id) = late {
            self.broke("a publish ends by its deadline", |_| format!("{id} of relay {replica}"));
        }
        let (of, config) = (&self.replicas[replica], &self.setting.config);
        let longest = config.stop_timeout + (config.store_timeout + GRACE) * 2 + of.stood_still;
        if let Life::Stopping(since) = of.life
            && self.now > since + longest
        {
            self.broke("a stop ends by its deadline and two of the store's", |_| format!("relay {replica}"));
        }
    }

    /// A drain ended.
    pub(crate) fn drained(&mut self, replica: usize, report: &Result<DrainReport, RelayError>) {
        self.tell(|_| format!("drain {replica} ends: {report:?}"));
        let of = &mut self.replicas[replica];
        of.life = Life::Stopped;
        let (settled, turns, failures) = (of.settled, of.turns, of.probes.failures);
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                if failures == 0 {
                    self.broke("a drain ends with an error only if its probe failed", |_| error.to_string());
                }
                return;
            }
        };
        if report.published != settled || turns > 0 {
            self.broke("a drain reports what it published, and holds nothing", |_| {
                format!("{} and not {settled}; {turns} turns", report.published)
            });
        }
        for (tenant, outcome) in &report.tenants {
            let number = self.setting.tenant(tenant);
            let of = &self.replicas[replica].tenants[number];
            let word = match outcome {
                DrainOutcome::Empty => "empty",
                DrainOutcome::HeldElsewhere => "held elsewhere",
                DrainOutcome::Refused { .. } => "refused",
                DrainOutcome::Failed { .. } => "failed",
                _ => "interrupted",
            };
            let expected = if of.outcome == "empty" && !of.held.is_empty() { "refused" } else { of.outcome };
            if word != expected {
                self.broke("a drain reports what came of each tenant", |_| {
                    format!("{tenant}: {word} and not {expected}")
                });
            }
        }
    }

    /// A health check that began then answers.
    pub(crate) fn health_said(&mut self, replica: usize, began: Duration, report: &HealthReport) {
        self.tell(|_| format!("health of relay {replica}: {report}"));
        let of = &self.replicas[replica];
        let expected = match of.life {
            Life::Working | Life::Stopping(_) => RelayState::Running,
            Life::Stopped => RelayState::Stopped,
            Life::Dead => return,
        };
        let (stood_still, timeout) = (of.stood_still, self.setting.config.health_timeout);
        if report.relay != Some(expected) {
            self.broke("health knows whether the relay works", |_| format!("{:?}", report.relay));
        }
        if self.now > began + timeout + stood_still {
            self.broke("health answers by its deadline", |_| format!("begun at {began:?}"));
        }
        if report.is_healthy() && expected != RelayState::Running {
            self.broke("health is red when the relay does not work", |_| report.to_string());
        }
        for tenant in 0..self.setting.tenants.len() {
            let id = &self.setting.tenants[tenant];
            let health = report.tenants.get(id).cloned().unwrap_or_default();
            let behind = |problem: &HealthProblem| matches!(problem, HealthProblem::Behind { tenant: behind, .. } if behind == id);
            if health.behind != report.problems.iter().any(behind) {
                self.broke("health says who is behind", |_| report.to_string());
            }
            let of = &self.replicas[replica].tenants[tenant];
            if expected != RelayState::Running || of.turn.is_some() || of.place == Place::Unknown {
                continue;
            }
            let known = if of.backs_off { of.failures } else { 0 };
            let failures = match health.state {
                TenantState::BackingOff { failures, .. } => failures,
                _ => 0,
            };
            let held = of.held.len();
            if failures != known {
                self.broke("health knows who backs off", |_| format!("{health}; {known} failures"));
            }
            if health.held_subjects.len() != held {
                self.broke("health knows which subjects wait", |_| format!("{health}; {held} wait"));
            }
        }
    }

    /// In the end: everything was published and marked, and nobody holds anything.
    pub(crate) fn judge_end(&mut self, marked: &[i64], held: usize) {
        let all: Vec<i64> = self.ledger.all_committed().map(|(id, _)| id).collect();
        let unheard = self.ledger.all_committed().find(|(_, message)| !message.is_accepted).map(|(id, _)| id);
        if let Some(id) = unheard {
            self.broke("at least once", |_| format!("{id} was never accepted"));
        }
        if marked != all {
            self.broke("in the end everything is marked", |_| format!("{marked:?} of {all:?}"));
        }
        if held > 0 {
            self.broke("in the end nobody holds a tenant", |_| format!("{held} are held"));
        }
    }
}
