//! Turns: who gets one, when, and what happens in it.

use std::time::Duration;

use crate::judge::End;
use crate::ledger::{Heard, State};
use crate::replica::{Life, Place, TurnOf};
use crate::setting::Shape;
use crate::world::World;

/// A verification that took so long proves nothing.
const LATE: Duration = Duration::from_secs(1);

impl World {
    /// A turn begins: the relay asks for the claim.
    pub(crate) fn turn_begins(&mut self, replica: usize, tenant: usize, limit: usize) {
        let now = self.now;
        self.tell(|world| format!("relay {replica} asks for {}", world.setting.tenants[tenant]));
        let concurrency = self.setting.concurrency;
        let of = &self.replicas[replica];
        let (life, turns, place) = (of.life, of.turns, of.tenants[tenant].place);
        if matches!(life, Life::Stopping(_) | Life::Stopped) {
            self.broke("after a stop nothing is claimed", |_| format!("by relay {replica}"));
        }
        if turns >= concurrency {
            self.broke("no more turns at once than the concurrency says", |_| format!("{}", turns + 1));
        }
        match place {
            Place::Due(_) | Place::Unknown => {}
            Place::Waiting { earliest, .. } if earliest <= now => {}
            Place::Waiting { earliest, .. } => {
                self.broke("a back-off is waited for", |_| {
                    format!("{:?} are left", earliest.saturating_sub(now))
                });
            }
            Place::Turn => self.broke("one turn of a tenant at a time", |_| format!("relay {replica}")),
            Place::Idle => self.broke("no turn without a cause", |_| format!("relay {replica}")),
            Place::Done => self.broke("a drain tries nothing twice", |_| format!("relay {replica}")),
        }
        self.judge_fairness(replica, tenant);
        let of = &mut self.replicas[replica];
        of.turns += 1;
        let of = &mut of.tenants[tenant];
        (of.place, of.backs_off) = (Place::Turn, false);
        of.turn = Some(TurnOf {
            began: now,
            limit,
            claim: None,
            claim_took: Duration::ZERO,
            woken: false,
            after_failure: of.failures > 0,
            verify_asked: now,
            proof_late: false,
            failed: of.held.keys().copied().collect(),
            refused: Vec::new(),
            accepted: 0,
        });
    }

    /// Nobody has a second turn while another waits for its first.
    fn judge_fairness(&mut self, replica: usize, tenant: usize) {
        let of = &self.replicas[replica];
        let Some(last_end) = of.tenants[tenant].last_end else { return };
        let waits = |(other, of): (usize, &crate::replica::TenantOf)| {
            let since = of.due_since(self.now).filter(|since| *since < last_end);
            since.filter(|_| other != tenant).map(|since| (other, since))
        };
        if let Some((other, since)) = of.tenants.iter().enumerate().find_map(waits) {
            self.broke("other due tenants have their turn before a tenant has its next", |world| {
                let names = &world.setting.tenants;
                let (one, other) = (&names[tenant], &names[other]);
                format!("{one} again at relay {replica}, and {other} is due since {since:?}")
            });
        }
    }

    /// The claim is given, as the relay heard.
    pub(crate) fn turn_claimed(&mut self, replica: usize, tenant: usize, messages: usize) {
        let now = self.now;
        let open = self.ledger.open.iter().rev().copied();
        let claim = open.into_iter().find(|claim| {
            let claim = &self.ledger.claims[*claim];
            claim.replica == replica && claim.tenant == tenant && claim.heard.is_none()
        });
        let Some(claim) = claim else {
            return self.broke("no claim that the store did not give", |_| format!("relay {replica}"));
        };
        self.ledger.claims[claim].heard = Some(now);
        let given = self.ledger.claims[claim].messages.len();
        if given != messages {
            self.broke("observers are told what is so", |_| format!("{messages} claimed, {given} given"));
        }
        if let Some(turn) = &mut self.replicas[replica].tenants[tenant].turn {
            turn.claim = Some(claim);
            turn.claim_took = now.saturating_sub(turn.began);
        }
    }

    /// The relay heard how a publish ended.
    pub(crate) fn publish_heard(&mut self, replica: usize, id: i64, heard: Heard) {
        let tenant = self.ledger.message(id).tenant;
        let claim = self.replicas[replica].tenants[tenant].turn.as_ref().and_then(|turn| turn.claim);
        let place = claim.and_then(|claim| self.ledger.claims[claim].place(id));
        let (Some(claim), Some(place)) = (claim, place) else {
            return self.broke("no publish outside of a turn", |_| format!("{id} by relay {replica}"));
        };
        let record = &mut self.ledger.claims[claim];
        record.told[place] = heard;
        let (state, begun) = (record.states[place], record.begun_at[place]);
        let is_cut = heard == Heard::Abandoned && !matches!(self.setting.shape, Shape::Slices(_));
        if is_cut && self.replicas[replica].is_working() {
            self.broke("a publish is dropped at a deadline only", |_| format!("{id} by relay {replica}"));
        }
        let deadline = begun + self.setting.config.publish_timeout;
        if heard == Heard::Refused && state == State::Dropped && self.now < deadline {
            self.broke("a publish is dropped at a deadline only", |_| format!("{id} before {deadline:?}"));
        }
        if let Some(turn) = &mut self.replicas[replica].tenants[tenant].turn {
            turn.accepted += usize::from(heard == Heard::Accepted);
            if heard == Heard::Refused {
                turn.refused.push(place);
            }
        }
        if (heard == Heard::Accepted) != (state == State::Accepted) {
            self.broke("observers are told what is so", |_| format!("{id} is {state:?}, told {heard:?}"));
        }
    }

    /// The relay asks whether its claim lives.
    pub(crate) fn verify_begins(&mut self, replica: usize, tenant: usize) {
        let now = self.now;
        self.tell(|world| format!("relay {replica} verifies its claim on {}", world.setting.tenants[tenant]));
        let Some(turn) = &mut self.replicas[replica].tenants[tenant].turn else { return };
        turn.verify_asked = now;
        let in_flight = turn.claim.map_or(0, |claim| self.ledger.claims[claim].in_flight());
        if in_flight > 0 {
            self.broke("a claim is verified when nothing is in flight", |_| format!("{in_flight} are"));
        }
    }

    /// The claim lives, as the relay heard.
    pub(crate) fn verified(&mut self, replica: usize, tenant: usize) {
        let now = self.now;
        let Some(turn) = &mut self.replicas[replica].tenants[tenant].turn else { return };
        turn.proof_late = now.saturating_sub(turn.verify_asked) >= LATE;
        let (asked, claim) = (turn.verify_asked, turn.claim);
        if let Some(claim) = claim {
            self.ledger.claims[claim].proven = asked;
        }
    }

    /// The relay gives a tenant back, and tells how many messages were accepted.
    pub(crate) fn settle_begins(&mut self, replica: usize, tenant: usize, accepted: usize) {
        let Some(turn) = &self.replicas[replica].tenants[tenant].turn else { return };
        let told = turn.accepted;
        if accepted != told {
            self.broke("settled and unsettled are what was accepted", |_| format!("{accepted} of {told}"));
        }
    }

    /// A settlement ended, as the relay heard.
    pub(crate) fn settle_ended(&mut self, replica: usize, tenant: usize, marked: Option<usize>) {
        let Some(turn) = &self.replicas[replica].tenants[tenant].turn else { return };
        let Some(claim) = turn.claim else { return };
        let record = &self.ledger.claims[claim];
        let accepted = record.states.iter().filter(|state| **state == State::Accepted).count();
        let unsettled = accepted - record.settled;
        let (told, settled) = (turn.accepted, record.settled);
        if told != settled + unsettled || marked.is_some_and(|marked| marked != settled) {
            self.broke("settled and unsettled are what was accepted", |_| {
                format!("{told} told accepted, {settled} settled (told {marked:?}), {unsettled} not")
            });
        }
        self.replicas[replica].settled += marked.unwrap_or(0) as u64;
        self.turn_ends(replica, tenant, if marked.is_some() { End::Settled } else { End::NotSettled });
    }
}
