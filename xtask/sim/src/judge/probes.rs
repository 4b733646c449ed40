//! Probes: when they come, and what follows from what they find.

use std::time::Duration;

use outbox_core::OldestPending;

use crate::replica::{News, Place, TenantOf};
use crate::world::World;

/// The longest rest after failed probes, or the poll interval if that is longer.
const LONGEST_REST: Duration = Duration::from_secs(5);
/// What multiplying a duration by a fraction may be off by.
const ROUNDING: Duration = Duration::from_micros(1);

impl World {
    /// A relay looks for work.
    pub(crate) fn probe_begins(&mut self, replica: usize) {
        self.tell(|_| format!("relay {replica} probes"));
        let now = self.now;
        let of = &mut self.replicas[replica];
        let (is_drain, stops) = (of.is_drain, !of.is_working());
        let probes = &mut of.probes;
        let twice = probes.is_under_way;
        let early = probes.failures > 0 && now + ROUNDING < probes.rest.0;
        (probes.is_under_way, probes.wanted, probes.last_start) = (true, false, now);
        probes.count += 1;
        let again = is_drain && probes.count > 1;
        of.tenants.iter_mut().for_each(|tenant| tenant.is_newer = false);
        if twice {
            self.broke("one probe at a time", |_| format!("relay {replica}"));
        }
        if early {
            self.broke("a rest after failed probes is waited for", |_| format!("relay {replica}"));
        }
        if again || stops {
            self.broke("a drain probes once, and nobody after a stop", |_| format!("relay {replica}"));
        }
    }

    /// A relay heard that a probe failed.
    pub(crate) fn probe_failed(&mut self, replica: usize) {
        let (now, poll) = (self.now, self.setting.config.poll_interval);
        let probes = &mut self.replicas[replica].probes;
        probes.failures += 1;
        let failures = probes.failures;
        let longest = self.longest_wait(failures).min(LONGEST_REST.max(poll));
        let probes = &mut self.replicas[replica].probes;
        (probes.is_under_way, probes.wanted) = (false, false);
        probes.rest = (now + longest.mul_f64(0.75), now + longest);
        if failures == 1 {
            self.must_tell(replica, News::ProbesFail);
        }
    }

    /// A relay heard what is pending.
    pub(crate) fn probe_answered(&mut self, replica: usize, oldest: &[OldestPending]) {
        self.tell(|_| {
            let found: Vec<String> = oldest.iter().map(|o| format!("{} {}", o.tenant_id, o.id)).collect();
            format!("relay {replica} finds {found:?}")
        });
        let probes = &mut self.replicas[replica].probes;
        probes.is_under_way = false;
        let had_failed = std::mem::take(&mut probes.failures) > 0;
        if !self.replicas[replica].is_working() {
            return;
        }
        if had_failed {
            self.must_tell(replica, News::ProbesRecovered);
        }
        let found: Vec<(usize, i64)> =
            oldest.iter().map(|found| (self.setting.tenant(&found.tenant_id), found.id.get())).collect();
        for tenant in 0..self.setting.tenants.len() {
            match found.iter().find(|(found, _)| *found == tenant) {
                Some((_, oldest)) => self.found(replica, tenant, *oldest),
                None => self.nothing_of(replica, tenant),
            }
        }
    }

    fn found(&mut self, replica: usize, tenant: usize, oldest: i64) {
        let now = self.now;
        let of = &mut self.replicas[replica].tenants[tenant];
        let mut news = Vec::new();
        if !of.is_newer && of.place != Place::Turn {
            of.held.retain(|subject, held| {
                let is_pending = held.message >= oldest;
                if !is_pending {
                    news.push(News::SubjectRecovered { tenant, subject: *subject });
                }
                is_pending
            });
            if of.refused.take_if(|refused| *refused < oldest).is_some() {
                (of.failures, of.backs_off) = (0, false);
                if let Place::Waiting { .. } = of.place {
                    of.place = Place::Idle;
                }
                news.push(News::Recovered { tenant });
            }
        }
        if matches!(of.place, Place::Idle | Place::Unknown) {
            of.place = Place::Due(now);
        }
        for news in news {
            self.must_tell(replica, news);
        }
    }

    /// Nothing of a tenant is pending: it is forgotten, and with it its failures.
    fn nothing_of(&mut self, replica: usize, tenant: usize) {
        let now = self.now;
        let of = &mut self.replicas[replica].tenants[tenant];
        // Whether it waits for a place already, nobody can see from outside.
        let (is_kept, is_open) = match of.place {
            Place::Due(_) | Place::Turn | Place::Done => (true, false),
            Place::Waiting { earliest, .. } => (false, earliest <= now),
            Place::Idle => (false, false),
            Place::Unknown => (false, true),
        };
        if is_kept || of.is_newer {
            return;
        }
        let mut news: Vec<News> =
            of.held.keys().map(|subject| News::SubjectRecovered { tenant, subject: *subject }).collect();
        if of.failures > 0 {
            news.push(News::Recovered { tenant });
        }
        if is_open {
            (of.place, of.is_unsure) = (Place::Unknown, true);
            for news in news {
                self.may_tell(replica, news);
            }
        } else {
            let last_end = of.last_end;
            *of = TenantOf { last_end, ..TenantOf::new() };
            for news in news {
                self.must_tell(replica, news);
            }
        }
    }

    /// After a step: no probe is late, and no wake is lost.
    pub(crate) fn judge_probes(&mut self, replica: usize) {
        let of = &self.replicas[replica];
        if of.probes.is_under_way || !of.is_working() || of.is_drain {
            return;
        }
        if of.probes.wanted && of.frozen_until <= self.now {
            self.broke("a wake causes a probe", |_| format!("relay {replica} does not probe"));
        }
        let of = &self.replicas[replica];
        let due = match of.probes.failures {
            0 => of.probes.last_start + self.setting.config.poll_interval,
            _ => of.probes.rest.1,
        };
        if due <= self.now && self.is_caught_up(replica) {
            self.broke("a probe at every poll, and a bounded rest after a failed one", |_| {
                format!("relay {replica} is to probe since {due:?}")
            });
        }
    }
}
