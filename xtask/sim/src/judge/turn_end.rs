//! What follows from how a turn ended: who waits, for how long, and what has to be told of it.

use std::time::Duration;

use crate::ledger::{ClaimRecord, Heard, State};
use crate::replica::{HeldBack, News, Place, TurnOf};
use crate::setting::{Setting, Shape};
use crate::world::World;

/// How a turn ended, as the relay heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Another holds the tenant.
    Held,
    /// The claim failed, or it does not live any more.
    NoClaim,
    Settled,
    NotSettled,
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Result {
    Clean {
        full: bool,
    },
    OutOfTime,
    Refused(i64),
    Failed,
    Interrupted,
    /// It was cut short after a stop was asked for: by its time or by the stop.
    CutShort,
}

/// After so many poll intervals of full batches a tenant leaves a gap.
const POLLS_BEFORE_GAP: u32 = 32;

impl World {
    /// A turn ended.
    pub(crate) fn turn_ends(&mut self, replica: usize, tenant: usize, end: End) {
        let now = self.now;
        let is_working = self.replicas[replica].is_working();
        let of = &mut self.replicas[replica];
        let Some(turn) = of.tenants[tenant].turn.take() else { return };
        of.turns -= 1;
        if turn.woken && of.probes.failures == 0 && !of.is_drain && is_working {
            of.probes.wanted = true;
        }
        let of = &mut of.tenants[tenant];
        (of.is_newer, of.last_end) = (true, Some(now));
        if !matches!(end, End::Held) {
            of.refused = None;
        }
        of.place = Place::Idle;
        let poll = self.setting.config.poll_interval;
        match end {
            End::Held => {
                of.place = Place::Waiting { earliest: now + poll.mul_f64(0.749), latest: now + poll * 5 / 4 };
                of.outcome = "held elsewhere";
                self.drain_is_done_with(replica, tenant);
            }
            End::NoClaim => self.failed(replica, tenant, 0, None),
            End::Settled | End::NotSettled => self.settled(replica, tenant, &turn, end),
        }
    }

    fn settled(&mut self, replica: usize, tenant: usize, turn: &TurnOf, end: End) {
        let Some(claim) = turn.claim else { return };
        let record = &self.ledger.claims[claim];
        let (is_settled, now) = (end == End::Settled, self.now);
        let settled = if is_settled { record.settled } else { 0 };
        let mut result = result(self, record, turn);
        let by_subject = by_subject(self);
        let last = turn.refused.last().map(|place| record.messages[*place]);
        if let Result::Clean { .. } | Result::OutOfTime = result
            && let Some(last) = last.filter(|_| by_subject && turn.after_failure && turn.accepted == 0)
        {
            result = Result::Refused(last);
        }
        if !is_settled {
            result = Result::Failed;
        }
        if result == Result::OutOfTime {
            let took = record.settle_asked.0.saturating_sub(record.heard.unwrap_or(now));
            if took < self.setting.config.max_batch_time {
                self.broke("a batch is cut short by its time, a stop or a refusal", |_| format!("{took:?}"));
            }
        }
        if by_subject {
            self.subjects_after(replica, tenant, turn, is_settled, result == Result::Clean { full: false });
        }
        let of = &mut self.replicas[replica].tenants[tenant];
        let failed_before = of.failures > 0;
        match result {
            Result::Refused(message) => {
                of.outcome = "refused";
                return self.failed(replica, tenant, settled, Some(message));
            }
            Result::Failed => {
                of.outcome = "failed";
                return self.failed(replica, tenant, settled, None);
            }
            Result::Interrupted => of.outcome = "interrupted",
            Result::CutShort => {
                of.outcome = "interrupted";
                let failures = of.failures + 1;
                self.may_tell(replica, News::BackedOff { tenant, failures, message: last });
                if failed_before {
                    self.may_tell(replica, News::Recovered { tenant });
                }
            }
            Result::Clean { full } => {
                of.outcome = "empty";
                let more = full && (settled > 0 || !turn.refused.is_empty());
                if more {
                    self.again(replica, tenant);
                } else {
                    self.rests(replica, tenant, turn, settled);
                }
            }
            Result::OutOfTime => self.again(replica, tenant),
        }
        if let Result::Clean { .. } | Result::OutOfTime = result {
            self.replicas[replica].tenants[tenant].failures = 0;
            if failed_before {
                self.must_tell(replica, News::Recovered { tenant });
            }
        }
        if self.replicas[replica].tenants[tenant].place == Place::Idle {
            self.drain_is_done_with(replica, tenant);
        }
    }

    /// A failure of the tenant: it backs off.
    fn failed(&mut self, replica: usize, tenant: usize, settled: usize, message: Option<i64>) {
        let of = &mut self.replicas[replica].tenants[tenant];
        of.failures = if settled > 0 { 1 } else { of.failures + 1 };
        (of.refused, of.full_since, of.is_unsure) = (message, None, false);
        // For how long is known once it is told.
        of.place = Place::Waiting { earliest: Duration::MAX, latest: Duration::MAX };
        if message.is_none() {
            of.outcome = "failed";
        }
        let failures = of.failures;
        self.must_tell(replica, News::BackedOff { tenant, failures, message });
        self.drain_is_done_with(replica, tenant);
    }

    /// It has more: it is due again at once, or leaves a gap after a long time of full batches.
    fn again(&mut self, replica: usize, tenant: usize) {
        let (now, poll) = (self.now, self.setting.config.poll_interval);
        let is_drain = self.replicas[replica].is_drain;
        let of = &mut self.replicas[replica].tenants[tenant];
        let since = *of.full_since.get_or_insert(now);
        of.place = if now.saturating_sub(since) >= poll * POLLS_BEFORE_GAP && !is_drain {
            let latest = now + poll * 5 / 4;
            let earliest = if of.is_unsure { now } else { latest };
            (of.full_since, of.is_unsure) = (None, false);
            Place::Waiting { earliest, latest }
        } else {
            Place::Due(now)
        };
    }

    /// It has nothing more. A claim that walked long past subjects that wait is not made again so soon.
    fn rests(&mut self, replica: usize, tenant: usize, turn: &TurnOf, settled: usize) {
        let (now, poll) = (self.now, self.setting.config.poll_interval);
        let is_drain = self.replicas[replica].is_drain;
        let of = &mut self.replicas[replica].tenants[tenant];
        (of.full_since, of.is_unsure) = (None, false);
        let rest = turn.claim_took * 10;
        // A subject whose wait is being told just now waits longer than since the turn began.
        let left_out = of.held.values().any(|held| held.until > turn.began);
        if settled == 0 && rest > poll && left_out && !is_drain {
            of.place = Place::Waiting { earliest: now + rest, latest: now + rest };
        }
    }

    fn drain_is_done_with(&mut self, replica: usize, tenant: usize) {
        if self.replicas[replica].is_drain {
            self.replicas[replica].tenants[tenant].place = Place::Done;
        }
    }

    /// Which subjects wait after the turn, and which flow again.
    fn subjects_after(
        &mut self,
        replica: usize,
        tenant: usize,
        turn: &TurnOf,
        is_settled: bool,
        seen_all: bool,
    ) {
        let Some(claim) = turn.claim else { return };
        let record = &self.ledger.claims[claim];
        let subject = |place: usize| self.ledger.message(record.messages[place]).subject;
        let accepted = |of: usize| {
            (0..record.messages.len())
                .any(|place| record.states[place] == State::Accepted && subject(place) == of)
        };
        let refused: Vec<(usize, i64, bool)> = turn
            .refused
            .iter()
            .map(|place| (subject(*place), record.messages[*place], accepted(subject(*place))))
            .collect();
        let served: Vec<usize> =
            turn.failed.iter().copied().filter(|subject| is_settled && accepted(*subject)).collect();
        let mut news = Vec::new();
        let of = &mut self.replicas[replica].tenants[tenant];
        of.held.retain(|subject, held| {
            let is_refused = refused.iter().any(|(refused, ..)| refused == subject);
            let is_over = !is_refused && (served.contains(subject) || (seen_all && held.until <= turn.began));
            if is_over {
                news.push(News::SubjectRecovered { tenant, subject: *subject });
            }
            !is_over
        });
        for (subject, message, progress) in refused {
            let before = of.held.get(&subject).filter(|_| !progress).map_or(0, |held| held.failures);
            let failures = before + 1;
            // Until when it waits is known once it is told.
            of.held.insert(subject, HeldBack { failures, message, until: Duration::MAX });
            news.push(News::SubjectBackedOff { tenant, subject, failures, message });
        }
        for news in news {
            self.must_tell(replica, news);
        }
    }
}

/// What a settled turn came to.
fn result(world: &World, record: &ClaimRecord, turn: &TurnOf) -> Result {
    let stops = record.settle_asked.1;
    if record.told.contains(&Heard::Abandoned) && by_subject(world) {
        return Result::Interrupted;
    }
    let cut_short = || match (stops, turn.proof_late) {
        (true, _) => Result::CutShort,
        (false, true) => Result::Failed,
        (false, false) => Result::OutOfTime,
    };
    let by_subject = by_subject(world);
    for (place, heard) in record.told.iter().enumerate() {
        match heard {
            Heard::Accepted => {}
            Heard::Abandoned => return Result::Interrupted,
            Heard::Refused if by_subject => {}
            Heard::Refused => return Result::Refused(record.messages[place]),
            Heard::Nothing if by_subject && is_behind_a_refusal(world, record, place) => {}
            Heard::Nothing => return cut_short(),
        }
    }
    Result::Clean { full: is_full(&world.setting, world, record, turn) }
}

fn by_subject(world: &World) -> bool {
    matches!(world.setting.shape, Shape::BySubject(_))
}

fn is_behind_a_refusal(world: &World, record: &ClaimRecord, place: usize) -> bool {
    let subject = |place: usize| world.ledger.message(record.messages[place]).subject;
    (0..place).any(|other| record.told[other] == Heard::Refused && subject(other) == subject(place))
}

fn is_full(setting: &Setting, world: &World, record: &ClaimRecord, turn: &TurnOf) -> bool {
    let bytes: usize = record.messages.iter().map(|id| world.ledger.message(*id).bytes).sum();
    record.messages.len() >= turn.limit || bytes >= setting.config.max_batch_bytes
}
