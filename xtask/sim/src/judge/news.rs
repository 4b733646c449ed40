//! Every change of state has its notice, with a back-off within its bounds; and there is no notice without a change.

use std::time::Duration;

use outbox_core::Notice;

use super::publish::subject_name;
use crate::replica::{Life, News, Place};
use crate::setting::SUBJECTS;
use crate::world::World;

/// What multiplying a duration by a fraction may be off by.
const ROUNDING: Duration = Duration::from_micros(1);

impl World {
    /// This change must be told before anything else happens.
    pub(crate) fn must_tell(&mut self, replica: usize, news: News) {
        self.expect(replica, news, true);
    }

    /// This change may be told: from outside nobody can see whether it is one.
    pub(crate) fn may_tell(&mut self, replica: usize, news: News) {
        self.expect(replica, news, false);
    }

    fn expect(&mut self, replica: usize, news: News, must: bool) {
        if !self.replicas[replica].is_drain {
            self.replicas[replica].to_tell.push((news, must));
        }
    }

    /// The longest wait after so many failures in a row; the shortest is three quarters of it.
    pub(crate) fn longest_wait(&self, failures: u32) -> Duration {
        let config = &self.setting.config;
        let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
        config.poll_interval.saturating_mul(factor).min(config.max_back_off.max(config.poll_interval))
    }

    /// A relay tells its observers something.
    pub(crate) fn told(&mut self, replica: usize, notice: &Notice<'_>) {
        if self.replicas.len() <= replica {
            // It is told before the relay that was just started is written down.
            return;
        }
        self.tell(|_| format!("relay {replica} tells: {notice:?}"));
        if self.replicas[replica].is_drain {
            return self.broke("a drain says nothing but its report", |_| format!("{notice:?}"));
        }
        let number = |name: &str| (0..SUBJECTS).find(|subject| subject_name(*subject) == name);
        match notice {
            Notice::Started => {}
            Notice::Stopped => self.stopped(replica),
            Notice::BackedOff { tenant, message, failures, wait, .. } => {
                let tenant = self.setting.tenant(tenant);
                let message = message.map(outbox_core::MessageId::get);
                let news = News::BackedOff { tenant, failures: *failures, message };
                self.explained(replica, &news);
                self.judge_wait(*failures, *wait);
                let until = self.now + *wait;
                let of = &mut self.replicas[replica].tenants[tenant];
                (of.failures, of.backs_off) = (*failures, true);
                of.place = Place::Waiting { earliest: until, latest: until };
            }
            Notice::Recovered { tenant, .. } => {
                let tenant = self.setting.tenant(tenant);
                self.explained(replica, &News::Recovered { tenant });
                let of = &mut self.replicas[replica].tenants[tenant];
                (of.failures, of.refused, of.backs_off) = (0, None, false);
            }
            Notice::SubjectBackedOff { tenant, subject, message, failures, wait, .. } => {
                let (tenant, subject) = (self.setting.tenant(tenant), number(subject).unwrap_or(SUBJECTS));
                let (failures, message) = (*failures, message.get());
                let news = News::SubjectBackedOff { tenant, subject, failures, message };
                self.explained(replica, &news);
                self.judge_wait(failures, *wait);
                let until = self.now + *wait;
                if let Some(held) = self.replicas[replica].tenants[tenant].held.get_mut(&subject) {
                    held.until = until;
                }
            }
            Notice::SubjectRecovered { tenant, subject, .. } => {
                let (tenant, subject) = (self.setting.tenant(tenant), number(subject).unwrap_or(SUBJECTS));
                self.explained(replica, &News::SubjectRecovered { tenant, subject });
                self.replicas[replica].tenants[tenant].held.remove(&subject);
            }
            Notice::ProbeFailing { .. } => self.explained(replica, &News::ProbesFail),
            Notice::ProbeRecovered => self.explained(replica, &News::ProbesRecovered),
            other => self.broke("no relay dies by itself", |_| format!("relay {replica}: {other:?}")),
        }
    }

    fn explained(&mut self, replica: usize, news: &News) {
        let to_tell = &mut self.replicas[replica].to_tell;
        if let Some(place) = to_tell.iter().position(|(expected, _)| expected == news) {
            to_tell.remove(place);
        } else {
            self.broke("no notice without a change of state", |world| {
                format!("{news:?} of relay {replica}; to tell: {:?}", world.replicas[replica].to_tell)
            });
        }
    }

    fn judge_wait(&mut self, failures: u32, wait: Duration) {
        let longest = self.longest_wait(failures);
        if wait > longest || wait + ROUNDING < longest.mul_f64(0.75) {
            self.broke("a back-off is within its bounds", |_| {
                format!("{wait:?} after {failures} failures, with at most {longest:?}")
            });
        }
    }

    /// A relay stopped: it holds nothing.
    pub(crate) fn stopped(&mut self, replica: usize) {
        if !matches!(self.replicas[replica].life, Life::Stopping(_)) {
            self.broke("no relay stops by itself", |_| format!("relay {replica}"));
        }
        self.replicas[replica].life = Life::Stopped;
        let turns = self.replicas[replica].turns;
        if turns > 0 {
            self.broke("a relay that stopped holds nothing", |_| format!("{turns} turns of relay {replica}"));
        }
    }

    /// After a step: nothing is left to tell.
    pub(crate) fn judge_told(&mut self, replica: usize) {
        let to_tell = &mut self.replicas[replica].to_tell;
        let untold = to_tell.iter().find(|(_, must)| *must).map(|(news, _)| news.clone());
        to_tell.clear();
        if let Some(news) = untold {
            self.broke("every change of state has its notice", |_| format!("{news:?} of relay {replica}"));
        }
    }
}
