//! A store that fails as it is told, and that tells whether its futures were dropped.
#![deny(clippy::missing_trait_methods)]

use std::fmt;
use std::future::pending;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, Clock, ProbeRequest, Probed, Settlement, Store, StoreError,
    StoreOperation, async_trait,
};

/// Puts faults in front of a store. A clone has the same script.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    faults: Arc<Faults>,
}

struct Faults {
    clock: Arc<dyn Clock>,
    script: Mutex<Script>,
}

#[derive(Debug, Default)]
struct Script {
    started: Vec<StoreOperation>,
    dropped: Vec<StoreOperation>,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    operation: StoreOperation,
    /// Which ones of that operation, counted from 1 since the start; `None` is every one.
    nth: Option<usize>,
    fault: StoreFault,
}

/// What goes wrong with an operation of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFault {
    /// It fails, without having done anything.
    Fail,
    /// It is done, and the answer is lost: it fails all the same.
    LoseAnswer,
    /// It panics.
    Panic,
    /// It never ends.
    Hang,
    /// It takes so long, by the clock, and is then done.
    Slow(Duration),
    /// It is done, and the answer comes so much later, by the clock: as to a process that stood still meanwhile.
    AnswerLate(Duration),
}

impl FaultyStore {
    /// Puts faults in front of a store; none yet. The clock is what slow operations wait on.
    pub fn new(inner: impl Store, clock: Arc<dyn Clock>) -> Self {
        let faults = Faults { clock, script: Mutex::default() };
        Self { inner: Arc::new(inner), faults: Arc::new(faults) }
    }

    /// Lets every such operation fail. Of several rules that apply, the first is taken.
    pub fn fail(&self, operation: StoreOperation, fault: StoreFault) {
        self.faults.lock().rules.push(Rule { operation, nth: None, fault });
    }

    /// Lets the operation of this number fail, counted from 1 since the start.
    pub fn fail_nth(&self, nth: usize, operation: StoreOperation, fault: StoreFault) {
        self.faults.lock().rules.push(Rule { operation, nth: Some(nth), fault });
    }

    /// Lets every operation succeed from now on.
    pub fn heal(&self) {
        self.faults.lock().rules.clear();
    }

    /// How many operations of this sort were started.
    pub fn started(&self, operation: StoreOperation) -> usize {
        self.faults.lock().started.iter().filter(|started| **started == operation).count()
    }

    /// The operations whose futures were dropped before they ended, in that order. A relay drops none: each
    /// drop costs a database connection.
    pub fn dropped(&self) -> Vec<StoreOperation> {
        self.faults.lock().dropped.clone()
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("script", &*self.faults.lock()).finish_non_exhaustive()
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, operation: StoreOperation) -> Option<StoreFault> {
        let mut script = self.lock();
        script.started.push(operation);
        let count = script.started.iter().filter(|started| **started == operation).count();
        let applies = |rule: &&Rule| rule.operation == operation && rule.nth.is_none_or(|nth| nth == count);
        script.rules.iter().find(applies).map(|rule| rule.fault.clone())
    }

    /// Does an operation, with the fault that it is due.
    async fn with<T>(
        &self,
        operation: StoreOperation,
        done: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let mut under_way = UnderWay { faults: self, operation, ended: false };
        let answer = match self.next(operation) {
            None => done.await,
            Some(StoreFault::Fail) => Err(StoreError::transient(operation, "it fails on purpose")),
            Some(StoreFault::LoseAnswer) => {
                done.await.and(Err(StoreError::transient(operation, "the answer was lost, on purpose")))
            }
            Some(StoreFault::Panic) => panic!("{operation} panics, on purpose"),
            Some(StoreFault::Hang) => pending().await,
            Some(StoreFault::Slow(duration)) => {
                self.clock.sleep(duration).await;
                done.await
            }
            Some(StoreFault::AnswerLate(duration)) => {
                let answer = done.await;
                self.clock.sleep(duration).await;
                answer
            }
        };
        under_way.ended = true;
        answer
    }
}

/// An operation under way; dropped, it did not end.
struct UnderWay<'a> {
    faults: &'a Faults,
    operation: StoreOperation,
    ended: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // A panic ends the operation: it is the future that must not be dropped.
        if !self.ended && !std::thread::panicking() {
            self.faults.lock().dropped.push(self.operation);
        }
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn source(&self) -> &str {
        self.inner.source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        self.inner.max_claims()
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        self.faults.with(StoreOperation::Probe, self.inner.probe(request)).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let outcome = self.faults.with(StoreOperation::Claim, self.inner.claim(request)).await?;
        Ok(match outcome {
            ClaimOutcome::Claimed(Claimed { messages, claim, .. }) => {
                let claim = FaultyClaim { inner: claim, faults: Arc::clone(&self.faults) };
                ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim)))
            }
            other => other,
        })
    }
}

struct FaultyClaim {
    inner: Box<dyn Claim>,
    faults: Arc<Faults>,
}

#[async_trait]
impl Claim for FaultyClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        self.faults.with(StoreOperation::Verify, self.inner.verify()).await
    }

    async fn settle(self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let Self { inner, faults } = *self;
        faults.with(StoreOperation::Settle, inner.settle(settlement)).await
    }
}
