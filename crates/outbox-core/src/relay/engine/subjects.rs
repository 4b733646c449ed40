//! The subjects of a tenant that wait after a refusal, each by itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::back_off::{Change, Pace};
use crate::relay::turn::{Refusal, Sweep, SweepEnd, Tried};
use crate::{ClaimRequest, HeldSubject, MessageId, RelayConfig};

/// A subject whose back-off changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SubjectChange {
    pub(super) subject: String,
    pub(super) change: Change,
}

/// At most as many as a claim can leave out.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    held: BTreeMap<String, Held>,
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
        pace: Pace,
        config: &RelayConfig,
        random: &mut fastrand::Rng,
        sweep: &Sweep,
    ) -> Vec<SubjectChange> {
        let mut changes = Vec::new();
        // A batch that was not full had everything: a subject that was asked for and is not in it has nothing.
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
            let before = self.held.get(&refusal.subject).filter(|_| !refusal.progress);
            let failures = before.map_or(0, |held| held.failures).saturating_add(1);
            let wait = pace.back_off(config, failures, random.f64());
            self.hold(now.saturating_add(wait), wait, failures, refusal);
            let change = Change::BackedOff { failures, wait };
            changes.push(SubjectChange { subject: refusal.subject.clone(), change });
        }
        changes
    }

    fn hold(&mut self, until: Duration, wait: Duration, failures: u32, refusal: &Refusal) {
        let (tried, reason) = (refusal.tried, refusal.reason.clone());
        self.held.insert(refusal.subject.clone(), Held { failures, wait, until, tried, reason });
    }

    /// Those whose message is not pending any more: it is older than whatever is.
    pub(super) fn recover_below(&mut self, oldest: MessageId) -> Vec<String> {
        let mut gone = Vec::new();
        self.held.retain(|subject, held| {
            let is_pending = held.tried.message >= oldest;
            if !is_pending {
                gone.push(subject.clone());
            }
            is_pending
        });
        gone
    }

    /// Those that wait when nothing is pending any more: another relay published what was refused.
    pub(super) fn into_recovered(self) -> Vec<String> {
        self.held.into_keys().collect()
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
        self.held.iter().map(told).collect()
    }
}
