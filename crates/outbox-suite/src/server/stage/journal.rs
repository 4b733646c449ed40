//! What a relay did, as its observer sees it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::{Notice, Observation, Observer, Operation, OperationKind, Outcome, Share};
use tokio::sync::watch;

use crate::{BOUND, chain};

/// Something that a relay did or met.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// It probed.
    Probed,
    /// A tenant was held by another.
    Held,
    /// It claimed so many messages.
    Claimed(usize),
    /// It settled so many.
    Settled(usize),
    /// An operation of the store failed: the error's line, with those of its causes.
    Failed(OperationKind, String),
    /// A tenant is left alone for a while.
    BackedOff {
        /// Which.
        tenant: String,
        /// For how long.
        wait: Duration,
        /// Why.
        reason: String,
    },
    /// A tenant is well again.
    Recovered(String),
    /// Probes fail: the error's line, with those of its causes.
    ProbeFailing(String),
    /// Probes are well again.
    ProbeRecovered,
    /// Another server answers.
    AnotherServer,
}

type Hook = (OperationKind, Box<dyn FnOnce() + Send>);

/// Writes down what a relay does. A clone is the same journal.
#[derive(Clone)]
pub struct Journal {
    entries: Arc<watch::Sender<Vec<Entry>>>,
    hooks: Arc<Mutex<Vec<Hook>>>,
}

impl Default for Journal {
    fn default() -> Self {
        Self { entries: Arc::new(watch::Sender::new(Vec::new())), hooks: Arc::default() }
    }
}

impl Journal {
    /// Everything so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.borrow().clone()
    }

    /// How many entries are like this.
    pub fn count(&self, like: impl Fn(&Entry) -> bool) -> usize {
        self.entries.borrow().iter().filter(|entry| like(entry)).count()
    }

    /// Waits until there are so many entries like this.
    pub async fn wait_for(&self, count: usize, like: impl Fn(&Entry) -> bool) {
        let mut entries = self.entries.subscribe();
        let enough = entries.wait_for(|all| all.iter().filter(|entry| like(entry)).count() >= count);
        let came = tokio::time::timeout(BOUND, enough).await.is_ok();
        assert!(came, "it never happened: {:#?}", self.entries());
    }

    /// Waits until a tenant has backed off so often, and answers how long it waits after the last time.
    ///
    /// A test moves a manual clock on by that, and by no more: while the relay asks the database, which answers in real
    /// time, the clock has to stand still, or the answer looks too old to prove a claim.
    pub async fn back_off(&self, nth: usize) -> Duration {
        self.wait_for(nth, |entry| matches!(entry, Entry::BackedOff { .. })).await;
        let mut waits = self.entries().into_iter().filter_map(|entry| match entry {
            Entry::BackedOff { wait, .. } => Some(wait),
            _ => None,
        });
        waits.nth(nth - 1).expect("as many as were waited for")
    }

    /// Waits until an operation of this kind has failed.
    pub async fn wait_for_failed(&self, kind: OperationKind) {
        self.wait_for(1, |entry| matches!(entry, Entry::Failed(failed, _) if *failed == kind)).await;
    }

    /// Does something right before the next operation of this kind.
    pub fn before_next(&self, kind: OperationKind, hook: impl FnOnce() + Send + 'static) {
        self.hooks.lock().unwrap().push((kind, Box::new(hook)));
    }

    fn add(&self, entry: Entry) {
        self.entries.send_modify(|entries| entries.push(entry));
    }
}

impl Observer for Journal {
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        let kind = operation.kind();
        let due: Vec<Hook> =
            self.hooks.lock().unwrap().extract_if(.., |(hooked, _)| *hooked == kind).collect();
        for (_, hook) in due {
            hook();
        }
        Some(Box::new(Watched { journal: self.clone(), kind }))
    }

    fn notice(&self, notice: &Notice<'_>) {
        self.add(match notice {
            Notice::BackedOff { tenant, wait, reason, .. } => {
                Entry::BackedOff { tenant: tenant.to_string(), wait: *wait, reason: (*reason).to_owned() }
            }
            Notice::Recovered { tenant, .. } => Entry::Recovered(tenant.to_string()),
            Notice::ProbeFailing { error, .. } => Entry::ProbeFailing(chain(error)),
            Notice::ProbeRecovered => Entry::ProbeRecovered,
            Notice::AnotherServer => Entry::AnotherServer,
            _ => return,
        });
    }
}

struct Watched {
    journal: Journal,
    kind: OperationKind,
}

impl Observation for Watched {
    fn propagate(&mut self, _: &mut outbox_core::Headers) {}

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn end(self: Box<Self>, outcome: &Outcome<'_>) {
        self.journal.add(match outcome {
            Outcome::Probed(_) => Entry::Probed,
            Outcome::Held => Entry::Held,
            Outcome::Claimed { tenants, .. } => Entry::Claimed(messages(tenants)),
            Outcome::Settled { tenants, .. } => Entry::Settled(messages(tenants)),
            Outcome::Failed(error) => Entry::Failed(self.kind, chain(error)),
            _ => return,
        });
    }
}

fn messages(tenants: &[Share<'_>]) -> usize {
    tenants.iter().map(|share| share.messages).sum()
}
