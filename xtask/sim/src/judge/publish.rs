//! One holder, in order, and nothing marked that was not accepted.

use std::time::Duration;

use outbox_core::ClaimRequest;

use crate::ledger::State;
use crate::replica::Life;
use crate::setting::Shape;
use crate::world::World;

/// How long a proof of the claim counts, from when it was asked for.
const PROOF: Duration = Duration::from_secs(1);

impl World {
    /// A claim asks for what it should.
    pub(crate) fn judge_request(&mut self, replica: usize, request: &ClaimRequest) {
        let tenant = self.setting.tenant(&request.tenant_id);
        let of = &self.replicas[replica].tenants[tenant];
        let Some(turn) = &of.turn else {
            return self.broke("no claim without a turn", |_| format!("of relay {replica}"));
        };
        let began = turn.began;
        let waiting = of.held.iter().filter(|(_, held)| held.until > began);
        let excluded: Vec<String> = waiting.map(|(subject, _)| subject_name(*subject)).collect();
        if request.excluded_subjects[..] != excluded[..] {
            self.broke("a subject that waits is left out, and no other", |_| {
                format!("relay {replica} leaves out {:?} and not {excluded:?}", request.excluded_subjects)
            });
        }
        let (limit, config) = (request.limit, &self.setting.config);
        if limit > config.max_batch || request.max_bytes != config.max_batch_bytes {
            self.broke("a claim is no larger than the options say", |_| format!("{limit} messages"));
        }
    }

    /// Nobody else holds a tenant that is given to somebody.
    pub(crate) fn judge_holder(&mut self, replica: usize, tenant: usize) {
        let is_held = |claim: &&usize| {
            let claim = &self.ledger.claims[**claim];
            claim.tenant == tenant
                && !claim.is_lost
                && claim.session.lock().is_ok_and(|session| session.is_some())
        };
        if let Some(other) = self.ledger.open.iter().find(is_held).copied() {
            self.broke("one holder per tenant", |world| {
                let other = world.ledger.claims[other].replica;
                format!("relay {replica} got a tenant that relay {other} holds")
            });
        }
    }

    /// Messages are handed to the publisher: the claim, and their places in it.
    pub(crate) fn judge_publish(&mut self, replica: usize, ids: &[i64]) -> Option<(usize, Vec<usize>)> {
        let tenant = self.ledger.message(*ids.first()?).tenant;
        self.tell(|world| format!("relay {replica} publishes {ids:?} of {}", world.setting.tenants[tenant]));
        let claim = self.ledger.claim_of(replica, tenant);
        let places: Option<Vec<usize>> = claim.and_then(|claim| {
            let claim = &self.ledger.claims[claim];
            ids.iter().map(|id| claim.place(*id)).collect()
        });
        let (Some(claim), Some(places)) = (claim, places) else {
            self.broke("nothing is published without a claim", |_| format!("{ids:?} by relay {replica}"));
            return None;
        };
        self.judge_begin(claim, ids);
        self.judge_overlap(claim, ids);
        for place in &places {
            self.judge_order(claim, *place);
            let now = self.now;
            let record = &mut self.ledger.claims[claim];
            record.states[*place] = State::InFlight;
            record.begun_at[*place] = now;
        }
        Some((claim, places))
    }

    /// Whether anything may be begun under this claim now.
    fn judge_begin(&mut self, claim: usize, ids: &[i64]) {
        let record = &self.ledger.claims[claim];
        let (now, replica) = (self.now, record.replica);
        let age = now.saturating_sub(record.proven);
        let since = now.saturating_sub(record.heard.unwrap_or(now));
        let is_first = record.states.iter().all(|state| *state == State::Waiting);
        if age >= PROOF {
            self.broke("nothing is begun on a proof of the claim that is older than a second", |_| {
                format!("relay {replica} asked {age:?} ago and publishes {ids:?}")
            });
        }
        if self.ledger.claims[claim].is_settling {
            self.broke("nothing is begun after the settlement", |_| format!("{ids:?}"));
        }
        if since >= self.setting.config.max_batch_time && !is_first {
            self.broke("a batch ends when its time is up", |_| format!("{ids:?} after {since:?}"));
        }
        if matches!(self.replicas[replica].life, Life::Stopping(_) | Life::Stopped) {
            self.broke("after a stop no message is begun", |_| format!("{ids:?} by relay {replica}"));
        }
        let largest = if let Shape::Slices(largest) = self.setting.shape { largest } else { 1 };
        if ids.len() > largest {
            self.broke("a slice is no larger than the options say", |_| format!("{ids:?}"));
        }
    }

    /// Two relays publish the same tenant at once only where a session was lost.
    fn judge_overlap(&mut self, claim: usize, ids: &[i64]) {
        let record = &self.ledger.claims[claim];
        let overlaps = |other: &&usize| {
            let other = &self.ledger.claims[**other];
            other.tenant == record.tenant && other.in_flight() > 0 && !other.is_lost && !record.is_lost
        };
        let other = self.ledger.open.iter().filter(|other| **other != claim).find(overlaps).copied();
        if let Some(other) = other {
            self.broke("a lost session explains an overlap, nothing else does", |world| {
                let other = &world.ledger.claims[other];
                format!("{ids:?} while relay {} publishes {:?}", other.replica, other.messages)
            });
        }
        let record = &self.ledger.claims[claim];
        let (in_flight, shape) = (record.in_flight(), self.setting.shape);
        let most = match shape {
            Shape::InOrder | Shape::Slices(_) => 1,
            Shape::BySubject(most) | Shape::Pipelined(most) => most,
        };
        if in_flight >= most {
            self.broke("no more messages at once than the ordering says", |_| {
                format!("{ids:?} beside {in_flight} others, {shape:?}")
            });
        }
    }

    /// Nothing is overtaken: what is ahead of it in its line is accepted, or on its way ahead of it.
    fn judge_order(&mut self, claim: usize, place: usize) {
        let record = &self.ledger.claims[claim];
        let (id, shape) = (record.messages[place], self.setting.shape);
        let subject = self.ledger.message(id).subject;
        let on_its_way = |state: State| {
            state == State::Accepted
                || (state == State::InFlight && matches!(shape, Shape::Pipelined(_) | Shape::Slices(_)))
        };
        let same_line = |other: i64| match shape {
            Shape::BySubject(_) => self.ledger.message(other).subject == subject,
            _ => true,
        };
        let ahead = record.messages.iter().zip(&record.states).take(place);
        let overtaken = ahead.filter(|(other, _)| same_line(**other)).find(|(_, state)| !on_its_way(**state));
        if let Some((other, state)) = overtaken.map(|(other, state)| (*other, *state)) {
            self.broke("within a batch nothing is overtaken", |_| {
                format!("{id} overtakes {other}, {state:?}")
            });
        }
        if self.ledger.claims[claim].states[place] != State::Waiting {
            self.broke("a batch has each message once", |_| format!("{id} again"));
        }
        let record = &self.ledger.claims[claim];
        if record.is_lost {
            return;
        }
        let in_this_batch =
            |other: i64| record.place(other).is_some_and(|place| on_its_way(record.states[place]));
        let late = self.ledger.ahead_of(id, record.read).find(|other| !in_this_batch(*other));
        if let Some(other) = late {
            self.broke("in order: what was committed with a lower id is accepted before", |_| {
                format!("{id} is published and {other} was never accepted")
            });
        }
    }

    /// A claim is settled with these.
    pub(crate) fn judge_settlement(&mut self, claim: usize, ids: &[i64]) {
        let record = &self.ledger.claims[claim];
        if record.in_flight() > 0 {
            self.broke("nothing is settled while it is in flight", |_| format!("{ids:?}"));
        }
        let record = &self.ledger.claims[claim];
        let accepted: Vec<i64> = match self.setting.shape {
            Shape::BySubject(_) => {
                let accepted = record.messages.iter().zip(&record.states);
                accepted.filter(|(_, state)| **state == State::Accepted).map(|(id, _)| *id).collect()
            }
            _ => record.messages[..record.prefix()].to_vec(),
        };
        if accepted != ids {
            self.broke("exactly what was accepted is marked", |_| {
                format!("{ids:?} are to be marked, and {accepted:?} were accepted")
            });
        }
        if ids.iter().any(|id| !self.ledger.message(*id).is_accepted) {
            self.broke("nothing is marked that was not accepted", |_| format!("{ids:?}"));
        }
        let (now, replica) = (self.now, self.ledger.claims[claim].replica);
        let stops = !self.replicas[replica].is_working();
        let record = &mut self.ledger.claims[claim];
        (record.is_settling, record.settle_asked) = (true, (now, stops));
        record.settled = ids.len();
    }
}

/// The name of a subject.
pub(crate) fn subject_name(subject: usize) -> String {
    format!("s{subject}")
}
