//! The reference store with one thing wrong in its reads and claims.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outbox_core::{
    ClaimOutcome, ClaimRequest, Claimed, Inspect as _, MessageId, OutboxMessage, PendingRequest,
    ProbeRequest, Probed, Store, StoreError, StoreOperation, TenantId, Tenants, async_trait,
};
use outbox_memory::MemoryStore;

use crate::claim::{BrokenClaim, HoldsNothing};
use crate::defect::Defect;
use crate::message;

/// What the replicas of a broken store share, beside the table.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) replicas: usize,
    pub(crate) hostile: Vec<(TenantId, MessageId)>,
    pub(crate) purged: bool,
    pub(crate) killed: bool,
    pub(crate) read_only: bool,
    pub(crate) leaked: usize,
    pub(crate) said_held: usize,
    pub(crate) pending_calls: usize,
    pub(crate) drops: usize,
    /// Claims that nobody gives back.
    pub(crate) kept: Vec<Claimed>,
    /// The limit of the latest claim.
    pub(crate) limit: u32,
    /// The highest id of the latest settlement of a whole batch, and the replica that made it.
    pub(crate) watermark: Option<MessageId>,
    pub(crate) last_marked: Option<(usize, OutboxMessage)>,
}

pub(crate) struct BrokenStore {
    pub(crate) inner: MemoryStore,
    pub(crate) defect: Defect,
    pub(crate) shared: Arc<Mutex<Shared>>,
    pub(crate) replica: usize,
    pub(crate) source: String,
    /// The same read again and again, with nothing between.
    pub(crate) streak: Mutex<(String, usize)>,
    pub(crate) alive: Arc<()>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error(operation: StoreOperation, message: String) -> StoreError {
    StoreError::permanent(operation, message)
}

impl BrokenStore {
    pub(crate) fn count(&self, tenant: &TenantId) -> usize {
        self.inner.unpublished().iter().filter(|message| message.tenant_id == *tenant).count()
    }

    pub(crate) fn is_held(&self, tenant: &TenantId) -> bool {
        self.inner.held().contains(tenant)
    }

    /// How often this read was made in a row.
    pub(crate) fn again(&self, read: String) -> usize {
        let mut streak = locked(&self.streak);
        streak.1 = if streak.0 == read { streak.1 + 1 } else { 1 };
        streak.0 = read;
        streak.1
    }

    pub(crate) fn shared(&self) -> MutexGuard<'_, Shared> {
        locked(&self.shared)
    }

    pub(crate) async fn keep(&self, tenant: &TenantId) {
        let request = ClaimRequest::new(tenant.clone(), NonZeroU32::MIN);
        if let Ok(ClaimOutcome::Claimed(claimed)) = self.inner.claim(&request).await {
            self.shared().kept.push(claimed);
        }
    }

    /// The messages of a claim, without a claim.
    async fn unclaimed(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let messages =
            self.inner.pending(&PendingRequest::new(request.tenant_id.clone(), request.limit)).await?;
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(HoldsNothing))))
    }

    /// Answers that a tenant is free or held otherwise than it is, or not at all.
    async fn before_claim(&self, request: &ClaimRequest) -> Option<Result<ClaimOutcome, StoreError>> {
        let tenant = &request.tenant_id;
        let (held, pending, limit) = (self.is_held(tenant), self.count(tenant), request.limit.get());
        let rows = self.inner.unpublished().len() + self.inner.published().len();
        let free = match self.defect {
            Defect::ClaimIgnoresTheHolder => held && limit == 10,
            Defect::ClaimIsReentrant => {
                held && pending == 2 && self.replica == 0 && self.shared().replicas == 1
            }
            Defect::ClaimHoldsNoEmptyTenant => rows == 0,
            Defect::TwoHoldersInARace => held && rows == 1,
            Defect::ReadOnlyIsClaimed => self.shared().read_only,
            _ => false,
        };
        if free {
            return Some(self.unclaimed(request).await);
        }
        let said_held = self.shared().said_held;
        if self.defect == Defect::ClaimWaitsForTheHolder && held && rows == 2 && said_held >= 15 {
            return Some(std::future::pending().await);
        }
        let refused = match self.defect {
            Defect::ClaimsOfFiveTenantsOnly => pending > 0 && self.inner.held().len() >= 5,
            Defect::ClaimsAreFewerThanSaid => pending == 0 && self.inner.held().len() >= 7,
            Defect::KilledStoreNeverRecovers => self.shared().killed && self.replica == 0 && limit == 1_000,
            Defect::ClaimsFoldCase => {
                let held = self.inner.held();
                held.iter().any(|held| held.as_str().eq_ignore_ascii_case(tenant.as_str()))
            }
            _ => false,
        };
        if refused {
            return Some(Ok(ClaimOutcome::Held));
        }
        let hostile = self.shared().hostile.first().cloned();
        let stopped = match (self.defect, &hostile) {
            (Defect::HostileRowStopsEverybody, Some((hostile, _))) => hostile != tenant && pending > 0,
            (Defect::HostileRowStopsWhatIsOlder, Some((hostile, _))) => hostile == tenant,
            _ => false,
        };
        stopped.then(|| Err(error(StoreOperation::Claim, format!("hostile: {hostile:?}"))))
    }

    /// Hands out something else than was read.
    fn alter(&self, request: &ClaimRequest, messages: &mut Vec<OutboxMessage>) {
        match self.defect {
            Defect::ClaimMixesTenants if messages.len() == 3 => {
                let all = self.inner.unpublished();
                let mut others = all.into_iter().filter(|message| message.tenant_id != request.tenant_id);
                if let (Some(first), 3) = (others.next(), others.count() + 1) {
                    messages.push(first);
                }
            }
            Defect::ReadBeforeTheLock => {
                let last = self.shared().last_marked.clone();
                let (rows, said_held) = (self.inner.published().len(), self.shared().said_held);
                let stale = messages.is_empty() && (2..50).contains(&rows) && said_held > 0;
                if let Some((_, message)) = last.filter(|(replica, _)| stale && *replica != self.replica) {
                    messages.push(message);
                }
            }
            Defect::ExclusionCutsABatch | Defect::ExclusionIsForShow => {
                messages.retain(|message| !request.excludes(&message.subject_id));
            }
            Defect::ExclusionFoldsCase => {
                let excluded = &request.excluded_subjects;
                let alike = |subject: &str| excluded.iter().any(|e| e.eq_ignore_ascii_case(subject));
                messages.retain(|message| !alike(&message.subject_id));
            }
            Defect::ClaimCountsNoHeaders => {
                let mut bytes = 0;
                messages.retain(|message| {
                    let before = bytes;
                    bytes +=
                        message.size() - message.headers.iter().map(|(_, value)| value.len()).sum::<usize>();
                    before == 0 || before < request.max_bytes
                });
            }
            Defect::LateCommitIsSkipped => {
                let watermark = self.shared().watermark;
                messages.retain(|message| Some(message.id) > watermark);
            }
            _ => {}
        }
        for message in messages.iter_mut() {
            message::alter(self.defect, message);
        }
    }
}

#[async_trait]
impl Store for BrokenStore {
    fn source(&self) -> &str {
        &self.source
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(8)
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        let again = self.again(format!("probe {request:?}"));
        let mut request = request.clone();
        let named = match &request.tenants {
            Tenants::Named(tenants) => tenants.to_vec(),
            _ => Vec::new(),
        };
        match self.defect {
            Defect::ProbeAnswersForEverybody if named.len() == 2 => request.tenants = Tenants::Discovered,
            Defect::ProbeStopsAtAThousand if named.len() > 1_000 => {
                request.tenants = Tenants::Named(named[..1_000].into());
            }
            Defect::ProbeTakesTheTenant if named.len() == 2 && self.is_held(&named[0]) => {
                self.keep(&named[1]).await;
            }
            Defect::HostileRowFailsTheProbe if !self.shared().hostile.is_empty() => {
                return Err(error(StoreOperation::Probe, "a time is infinite".to_owned()));
            }
            _ => {}
        }
        let mut found = self.inner.probe(&request).await?;
        message::alter_probe(self.defect, &self.inner, &named, again, &mut found.oldest);
        Ok(found)
    }

    async fn claim(&self, asked: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.again("claim".to_owned());
        if let Some(outcome) = self.before_claim(asked).await {
            return outcome;
        }
        let mut request = asked.clone();
        match self.defect {
            Defect::ExclusionCutsABatch if self.count(&request.tenant_id) == 48 => {
                request.excluded_subjects = Arc::default();
            }
            Defect::ExclusionIsForShow if self.count(&request.tenant_id) == 4 => {
                request.excluded_subjects = Arc::default();
            }
            Defect::ExclusionStopsAtFifty => {
                request.excluded_subjects = request.excluded_subjects.iter().take(50).cloned().collect();
            }
            Defect::ClaimIgnoresMaxBytes
                if asked.excluded_subjects.is_empty() && asked.tenant_id.as_str() == "acme" =>
            {
                request.max_bytes = usize::MAX;
            }
            Defect::ClaimCountsNoHeaders => request.max_bytes = usize::MAX,
            Defect::ClaimOfOneHandsOutTwo if request.limit.get() == 1 => {
                request.limit = NonZeroU32::new(2).expect("not zero");
            }
            _ => {}
        }
        let ClaimOutcome::Claimed(claimed) = self.inner.claim(&request).await? else {
            self.shared().said_held += 1;
            if self.defect == Defect::HeldLeavesATransaction {
                self.shared().leaked += 1;
            }
            return Ok(ClaimOutcome::Held);
        };
        let claimed = self.await_once(&request, claimed).await;
        self.shared().limit = request.limit.get();
        let Claimed { mut messages, claim, .. } = claimed;
        let handed_out = messages.clone();
        self.alter(asked, &mut messages);
        let claim = BrokenClaim {
            inner: Some(claim),
            defect: self.defect,
            shared: Arc::clone(&self.shared),
            store: self.inner.clone(),
            replica: self.replica,
            alive: Arc::downgrade(&self.alive),
            handed_out,
            limit: request.limit.get(),
            verified: 0,
        };
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim))))
    }
}

impl BrokenStore {
    /// An await after the tenant was taken, as a database has it; with a defect if it is not survived.
    async fn await_once(&self, request: &ClaimRequest, claimed: Claimed) -> Claimed {
        let dropped: fn(&mut Shared) = match self.defect {
            Defect::CancelledClaimKeepsTheTenant if self.count(&request.tenant_id) == 2 => |_| {},
            Defect::CancelledClaimLeavesATransaction => |shared| {
                shared.leaked += 1;
                shared.kept.clear();
            },
            _ => return claimed,
        };
        let leak = LeakWhenDropped(Some(claimed), &self.shared, dropped);
        tokio::task::yield_now().await;
        leak.take()
    }
}

/// Keeps a claim for ever when the future that has it is dropped.
pub(crate) struct LeakWhenDropped<'a>(
    pub(crate) Option<Claimed>,
    pub(crate) &'a Mutex<Shared>,
    pub(crate) fn(&mut Shared),
);

impl LeakWhenDropped<'_> {
    pub(crate) fn take(mut self) -> Claimed {
        self.0.take().expect("it is taken once")
    }
}

impl Drop for LeakWhenDropped<'_> {
    fn drop(&mut self) {
        if let Some(claimed) = self.0.take() {
            let mut shared = locked(self.1);
            shared.kept.push(claimed);
            self.2(&mut shared);
        }
    }
}

/// The age that a store answers which forgot that a difference may be negative.
pub(crate) fn without_sign(age: Duration) -> Duration {
    if age.is_zero() { Duration::from_secs(86_400) } else { age }
}
