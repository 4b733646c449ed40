//! The subjects of a tenant that wait after a refusal, each by itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Change, back_off};
use crate::relay::publishing::Refusal;
use crate::relay::sweep::{Sweep, SweepEnd, Tried};
use crate::{ClaimRequest, HeldSubject, RelayConfig};

/// A subject whose back-off changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubjectChange {
    pub(crate) subject: String,
    pub(crate) change: Change,
}

/// At most as many as a claim can leave out.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    held: HashMap<String, Held>,
    /// When the turn began that is under way: who waited then was left out of it.
    since: Duration,
}

#[derive(Debug)]
struct Held {
    failures: u32,
    wait: Duration,
    until: Duration,
    tried: Tried,
    reason: String,
}

impl Subjects {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// A turn begins: the subjects that it leaves out, and what was tried of all that failed.
    pub(super) fn begin(&mut self, now: Duration) -> (Arc<[String]>, Arc<HashMap<String, Tried>>) {
        self.since = now;
        if self.held.is_empty() {
            return (Arc::default(), Arc::default());
        }
        let waiting = self.held.iter().filter(|(_, held)| held.until > now);
        let excluded = waiting.map(|(subject, _)| subject.clone()).collect();
        let tried = self.held.iter().map(|(subject, held)| (subject.clone(), held.tried)).collect();
        (excluded, Arc::new(tried))
    }

    /// Whether the turn under way leaves subjects out.
    pub(super) fn are_left_out(&self) -> bool {
        self.held.values().any(|held| held.until > self.since)
    }

    /// A turn ended.
    pub(super) fn finished(
        &mut self,
        now: Duration,
        config: &RelayConfig,
        random: &mut fastrand::Rng,
        sweep: &Sweep,
    ) -> Vec<SubjectChange> {
        let mut changes = Vec::new();
        // A batch that was not full had all there was: whoever was asked for and is not in it has nothing.
        let seen_all = matches!(sweep.end, SweepEnd::Clean { full: false, .. });
        let refused = |subject: &str| sweep.refusals.iter().any(|refusal| refusal.subject == *subject);
        let since = self.since;
        self.held.retain(|subject, held| {
            let over =
                !refused(subject) && (sweep.served.contains(subject) || (seen_all && held.until <= since));
            if over {
                changes.push(SubjectChange { subject: subject.clone(), change: Change::Recovered });
            }
            !over
        });
        for refusal in &sweep.refusals {
            let full = self.held.len() >= ClaimRequest::MAX_EXCLUDED_SUBJECTS;
            if full && !self.held.contains_key(&refusal.subject) {
                // The tenant waits for those beyond the bound.
                continue;
            }
            let change = self.refused(now, config, random.f64(), refusal);
            changes.push(SubjectChange { subject: refusal.subject.clone(), change });
        }
        changes
    }

    fn refused(&mut self, now: Duration, config: &RelayConfig, jitter: f64, refusal: &Refusal) -> Change {
        let before = self.held.get(&refusal.subject).filter(|_| !refusal.progress);
        let failures = before.map_or(0, |held| held.failures).saturating_add(1);
        let wait = back_off(config, failures, jitter);
        let (until, tried, reason) = (now.saturating_add(wait), refusal.tried, refusal.reason.clone());
        self.held.insert(refusal.subject.clone(), Held { failures, wait, until, tried, reason });
        Change::BackedOff { failures, wait }
    }

    /// Those that wait when nothing is pending any more: another relay published what was refused.
    pub(super) fn into_recovered(self) -> Vec<String> {
        let mut subjects: Vec<String> = self.held.into_keys().collect();
        subjects.sort_unstable();
        subjects
    }

    /// What health says of them, in the order of their names.
    pub(super) fn told(&self) -> Vec<HeldSubject> {
        let told = |(subject, held): (&String, &Held)| HeldSubject {
            subject_id: subject.clone(),
            failures: held.failures,
            wait: held.wait,
            message: held.tried.message,
            reason: held.reason.clone(),
        };
        let mut told: Vec<_> = self.held.iter().map(told).collect();
        told.sort_by(|one, other| one.subject_id.cmp(&other.subject_id));
        told
    }
}
