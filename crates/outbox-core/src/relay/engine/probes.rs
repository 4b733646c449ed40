//! When to look for work: at every poll, at a wake, and ever less often while looking fails.

use std::time::Duration;

use super::back_off::{Pace, back_off};
use crate::RelayConfig;

/// The longest rest after failed probes, or the poll interval if that is longer.
const LONGEST_REST: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Probes {
    pace: Pace,
    under_way: bool,
    /// When the next one is due; `None` is never.
    next: Option<Duration>,
    failures: u32,
    /// What the last answer said of its server.
    server: Option<String>,
    random: fastrand::Rng,
}

impl Probes {
    pub(super) fn new(pace: Pace, now: Duration, random: fastrand::Rng) -> Self {
        Self { pace, under_way: false, next: Some(now), failures: 0, server: None, random }
    }

    /// When the next one is due, unless one is under way.
    pub(super) fn due(&self) -> Option<Duration> {
        self.next.filter(|_| !self.under_way)
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Whether another one is to come.
    pub(super) fn is_over(&self) -> bool {
        !self.under_way && self.next.is_none()
    }

    /// Begins one if it is due.
    pub(super) fn begin(&mut self, now: Duration, config: &RelayConfig) -> bool {
        let begins = self.due().is_some_and(|due| due <= now);
        if begins {
            self.under_way = true;
            self.next = (self.pace == Pace::Steady).then(|| now.saturating_add(config.poll_interval));
        }
        begins
    }

    /// There may be news. One that is under way may have looked too early: another follows it. A failed one's rest
    /// stands: a wake never cuts one short.
    pub(super) fn want(&mut self, now: Duration) {
        if self.failures == 0 && self.pace == Pace::Steady {
            self.next = Some(now);
        }
    }

    /// One succeeded; says whether those before it had failed.
    pub(super) fn succeeded(&mut self) -> bool {
        self.under_way = false;
        std::mem::take(&mut self.failures) > 0
    }

    /// One was answered by this server; says whether the one before was answered by another. Of a server that is not known
    /// nothing is said.
    pub(super) fn is_another(&mut self, server: Option<String>) -> bool {
        if server.is_none() || self.server == server {
            return false;
        }
        std::mem::replace(&mut self.server, server).is_some()
    }

    /// One failed; says whether it is the first.
    pub(super) fn failed(&mut self, now: Duration, config: &RelayConfig) -> bool {
        self.under_way = false;
        self.failures = self.failures.saturating_add(1);
        if self.pace == Pace::Steady {
            let longest = back_off(config, self.failures, 0.0).min(LONGEST_REST.max(config.poll_interval));
            let rest = longest.mul_f64(1.0 - self.random.f64() / 4.0);
            self.next = Some(now.saturating_add(rest));
        }
        self.failures == 1
    }
}
