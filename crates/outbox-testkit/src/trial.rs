//! One law on trial: its table, and what the laws do to it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outbox_core::{
    ClaimOutcome, ClaimRequest, Claimed, Inspect, MessageId, NewMessage, OldestPending, PendingRequest,
    ProbeRequest, Probed, Settlement, Store, StoreError, TenantId, Tenants,
};

use crate::capability::answered;
use crate::erased::{ErasedHarness, Facts};
use crate::{Capability, Harness, Leftovers, Unsupported};

/// A law on trial on a table of its own.
#[derive(Clone)]
pub struct Trial {
    law: &'static str,
    facts: Facts,
    harness: Arc<Box<dyn ErasedHarness>>,
    /// Whether some of the law could not be checked.
    unchecked: Arc<AtomicBool>,
}

impl Trial {
    /// Puts the law of this name on trial.
    pub fn new(law: &'static str, harness: impl Harness) -> Self {
        Self::of(law, Box::new(harness))
    }

    pub(crate) fn of(law: &'static str, harness: Box<dyn ErasedHarness>) -> Self {
        Self { law, facts: harness.facts(), harness: Arc::new(harness), unchecked: Arc::default() }
    }

    /// Removes what the harness made, if this is the last clone.
    pub(crate) async fn close(self) {
        if let Some(harness) = Arc::into_inner(self.harness) {
            harness.close().await;
        }
    }

    /// The same law's second table.
    pub(crate) fn beside(&self, harness: Box<dyn ErasedHarness>) -> Self {
        Self::of(self.law, harness)
    }

    pub(crate) fn harness(&self) -> &dyn ErasedHarness {
        &**self.harness
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What a hook answered, if the harness can; otherwise the law is reported as not checked.
    pub(crate) fn can<T>(&self, capability: Capability, answer: Result<T, Unsupported>) -> Option<T> {
        let declared_impossible = self.facts.cannot.contains(&capability);
        let answer = answered(self.facts.name, self.law, &capability, declared_impossible, answer);
        if answer.is_none() {
            self.unchecked.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Whether the whole law was checked, as far as it went.
    pub(crate) fn is_checked(&self) -> bool {
        !self.unchecked.load(Ordering::Relaxed)
    }

    /// Another process's store.
    pub(crate) async fn store(&self) -> Arc<dyn Inspect> {
        self.harness.connect().await
    }

    /// Writes rows and commits them.
    pub(crate) async fn commit(&self, rows: &[NewMessage]) -> Vec<MessageId> {
        let write = self.harness.write(rows).await;
        let ids = write.ids().to_vec();
        assert_eq!(ids.len(), rows.len(), "the harness answers as many ids as it was given rows");
        write.commit().await;
        ids
    }

    /// Writes and commits `count` messages of a tenant.
    pub(crate) async fn commit_some(&self, tenant: &TenantId, count: usize) -> Vec<MessageId> {
        self.commit(&some(tenant, count)).await
    }

    /// What is left over, as soon as nothing is, or at the latest after the time that a store may take.
    pub(crate) async fn leftovers(&self) -> Result<Leftovers, Unsupported> {
        let start = Instant::now();
        loop {
            let leftovers = self.harness.leftovers().await?;
            if leftovers == Leftovers::NONE || start.elapsed() > self.facts.free_within {
                return Ok(leftovers);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Claims a tenant that may still be on its way back from somebody who abandoned it.
    ///
    /// # Panics
    /// If it is not free within the time that a store may take.
    pub(crate) async fn claim_freed(&self, store: &dyn Store, tenant: &TenantId, why: &str) -> Claimed {
        match self.claim_by(store, &request(tenant, 1_000), why).await {
            ClaimOutcome::Claimed(claimed) => claimed,
            _ => panic!("tenant {tenant} is still held {:?} after {why}", self.facts.free_within),
        }
    }

    /// Claims a tenant until it gets it, or until the time is up that a store may take.
    pub(crate) async fn claim_by(
        &self,
        store: &dyn Store,
        request: &ClaimRequest,
        why: &str,
    ) -> ClaimOutcome {
        let start = Instant::now();
        loop {
            match store.claim(request).await {
                Ok(ClaimOutcome::Held) if start.elapsed() <= self.facts.free_within => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                Ok(outcome) => return outcome,
                Err(error) => {
                    panic!("a claim on {} failed after {why}: {}", request.tenant_id, chain(&error))
                }
            }
        }
    }

    /// The error of a claim that cannot be had. One that failed before it may still be on its way back.
    ///
    /// # Panics
    /// If there is no error.
    pub(crate) async fn claim_fails(
        &self,
        store: &dyn Store,
        request: &ClaimRequest,
        why: &str,
    ) -> StoreError {
        let start = Instant::now();
        loop {
            match store.claim(request).await {
                Err(error) => return error,
                Ok(ClaimOutcome::Held) if start.elapsed() <= self.facts.free_within => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                Ok(outcome) => panic!("{why}, yet a claim answered {outcome:?}"),
            }
        }
    }

    /// Awaits what must not wait for anybody.
    ///
    /// # Panics
    /// If it does not answer at once.
    pub(crate) async fn at_once<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        let Ok(answer) = tokio::time::timeout(self.facts.at_once, future).await else {
            panic!("{what} did not answer within {:?}: it waits for the holder", self.facts.at_once)
        };
        answer
    }
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trial").field("law", &self.law).field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// How often a law looks whether a database has given something back.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

pub(crate) fn tenant(id: &str) -> TenantId {
    TenantId::new(id).unwrap_or_else(|error| panic!("{id:?}: {error}"))
}

/// A message of a tenant that differs from its other ones by `number`.
pub(crate) fn message(tenant: &TenantId, number: usize) -> NewMessage {
    NewMessage::new(tenant.clone(), "order.placed", subject(number), format!("payload {number}"))
}

/// The subject of a tenant's message of this number.
pub(crate) fn subject(number: usize) -> String {
    format!("order-{number}")
}

pub(crate) fn some(tenant: &TenantId, count: usize) -> Vec<NewMessage> {
    (0..count).map(|number| message(tenant, number)).collect()
}

pub(crate) fn request(tenant: &TenantId, limit: u32) -> ClaimRequest {
    ClaimRequest::new(tenant.clone(), limit_of(limit))
}

/// The first pending messages of a tenant.
pub(crate) fn first_pending(tenant: &TenantId, limit: u32) -> PendingRequest {
    PendingRequest::new(tenant.clone(), limit_of(limit))
}

pub(crate) fn limit_of(limit: u32) -> std::num::NonZeroU32 {
    std::num::NonZeroU32::new(limit).unwrap_or(std::num::NonZeroU32::MIN)
}

pub(crate) async fn claim_outcome(store: &dyn Store, tenant: &TenantId, limit: u32) -> ClaimOutcome {
    match store.claim(&request(tenant, limit)).await {
        Ok(outcome) => outcome,
        Err(error) => panic!("a claim on {tenant} failed: {}", chain(&error)),
    }
}

/// Claims a tenant that is free.
pub(crate) async fn claim(store: &dyn Store, tenant: &TenantId, limit: u32) -> Claimed {
    match claim_outcome(store, tenant, limit).await {
        ClaimOutcome::Claimed(claimed) => claimed,
        _ => panic!("nobody holds tenant {tenant}, yet a claim says that it is held"),
    }
}

pub(crate) async fn settle(claimed: Claimed, published: &[MessageId]) {
    if let Err(error) = claimed.claim.settle(Settlement::published(published.iter().copied())).await {
        panic!("settling {published:?} failed: {}", chain(&error));
    }
}

pub(crate) async fn is_held(store: &dyn Store, tenant: &TenantId) -> bool {
    match claim_outcome(store, tenant, 1).await {
        // A dropped claim may keep the tenant for a moment: the question gives back what it took.
        ClaimOutcome::Claimed(claimed) => {
            let _ = claimed.claim.settle(Settlement::release()).await;
            false
        }
        _ => true,
    }
}

/// The ids of a tenant's pending messages.
pub(crate) async fn pending(store: &dyn Inspect, tenant: &TenantId) -> Vec<MessageId> {
    match store.pending(&first_pending(tenant, 10_000)).await {
        Ok(messages) => messages.iter().map(|message| message.id).collect(),
        Err(error) => panic!("pending of {tenant} failed: {}", chain(&error)),
    }
}

/// What a probe of these tenants answers, in the order of the tenants' names.
pub(crate) async fn probe(store: &dyn Store, tenants: Tenants) -> Vec<OldestPending> {
    match store.probe(&ProbeRequest::new(tenants)).await {
        Ok(Probed { mut oldest, .. }) => {
            oldest.sort_by(|a, b| a.tenant_id.cmp(&b.tenant_id));
            oldest
        }
        Err(error) => panic!("a probe failed: {}", chain(&error)),
    }
}

pub(crate) fn named<'a>(tenants: impl IntoIterator<Item = &'a TenantId>) -> Tenants {
    Tenants::Named(tenants.into_iter().cloned().collect())
}

pub(crate) fn ids(claimed: &Claimed) -> Vec<MessageId> {
    claimed.messages.iter().map(|message| message.id).collect()
}

/// A task's answer; its panic goes on in the caller.
pub(crate) fn joined<T>(ended: Result<T, tokio::task::JoinError>) -> T {
    ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// An error with what it came from, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line
}
