//! The reference store's claim with one thing wrong.

use std::sync::{Arc, Mutex, Weak};

use futures_util::FutureExt as _;
use outbox_core::{Claim, Claimed, OutboxMessage, Settlement, StoreError, StoreOperation, async_trait};
use outbox_memory::MemoryStore;

use crate::defect::Defect;
use crate::store::{Shared, locked};

/// A claim that excludes nobody and marks nothing.
pub(crate) struct HoldsNothing;

#[async_trait]
impl Claim for HoldsNothing {
    async fn verify(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn settle(self: Box<Self>, _settlement: Settlement) -> Result<(), StoreError> {
        Ok(())
    }
}

pub(crate) struct BrokenClaim {
    pub(crate) inner: Option<Box<dyn Claim>>,
    pub(crate) defect: Defect,
    pub(crate) shared: Arc<Mutex<Shared>>,
    pub(crate) store: MemoryStore,
    pub(crate) replica: usize,
    pub(crate) alive: Weak<()>,
    pub(crate) handed_out: Vec<OutboxMessage>,
    pub(crate) limit: u32,
    pub(crate) verified: usize,
}

impl BrokenClaim {
    fn has(&self, id: outbox_core::MessageId) -> bool {
        self.handed_out.iter().any(|message| message.id == id)
    }

    fn keep(&mut self) {
        if let Some(claim) = self.inner.take() {
            locked(&self.shared).kept.push(Claimed::new(Vec::new(), claim));
        }
    }

    /// Settles something else than it was told to.
    fn alter(&self, settlement: &mut Settlement) {
        let published = &mut settlement.published;
        match self.defect {
            Defect::SettleMarksARange => {
                let last = published.iter().max().copied().filter(|id| id.get() < 1 << 40);
                if let Some(last) = last.filter(|_| published.iter().all(|id| self.has(*id))) {
                    let range = self.handed_out.iter().map(|message| message.id).filter(|id| *id <= last);
                    *published = range.collect();
                }
            }
            Defect::SettleOfNothingMarks if published.is_empty() && self.limit == 2 => {
                published.extend(self.handed_out.first().map(|message| message.id));
            }
            Defect::SettleIgnoresForeignIds if self.limit == 2 => published.retain(|id| self.has(*id)),
            Defect::SettleIgnoresMarkedIds => {
                let marked = self.store.published();
                published.retain(|id| !marked.iter().any(|marked| marked.message.id == *id));
            }
            _ => {}
        }
    }

    /// Remembers what was marked.
    fn note(&self, settlement: &Settlement) {
        let mut shared = locked(&self.shared);
        if settlement.published.len() == self.handed_out.len() {
            shared.watermark = shared.watermark.max(settlement.published.last().copied());
        }
        if let Some(last) = self.handed_out.last().filter(|last| settlement.published.contains(&last.id)) {
            shared.last_marked = Some((self.replica, last.clone()));
        }
    }
}

#[async_trait]
impl Claim for BrokenClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        if self.defect == Defect::ClaimDiesWithItsStore && self.alive.upgrade().is_none() {
            return Err(StoreError::transient(StoreOperation::Verify, "its store is gone"));
        }
        if self.defect == Defect::VerifyEndsTheClaim && self.verified == 2 {
            self.inner = None;
        }
        if self.defect == Defect::KilledClaimVerifies {
            return Ok(());
        }
        match &mut self.inner {
            Some(claim) => claim.verify().await?,
            None => return Err(StoreError::transient(StoreOperation::Verify, "it ended")),
        }
        self.verified += 1;
        Ok(())
    }

    async fn settle(mut self: Box<Self>, mut settlement: Settlement) -> Result<(), StoreError> {
        self.alter(&mut settlement);
        if self.defect == Defect::KilledClaimSettles && locked(&self.shared).killed {
            return Ok(());
        }
        if self.defect == Defect::SettleKeepsTheTenant && settlement.published.len() == 1 {
            let shared = locked(&self.shared);
            if shared.replicas == 2 && shared.said_held == 0 && self.handed_out.len() == 3 && self.limit == 10
            {
                drop(shared);
                self.keep();
                return Ok(());
            }
        }
        if self.defect == Defect::CancelledSettleMarksHalf && settlement.published.len() == 2 {
            let mut half = MarksHalfWhenDropped(self.inner.take(), settlement.published[0]);
            tokio::task::yield_now().await;
            self.inner = half.0.take();
        }
        self.note(&settlement);
        match self.inner.take() {
            Some(claim) => claim.settle(settlement).await,
            None => Err(StoreError::transient(StoreOperation::Settle, "it ended")),
        }
    }
}

impl Drop for BrokenClaim {
    fn drop(&mut self) {
        let ids: Vec<_> = self.handed_out.iter().map(|message| message.id).collect();
        if self.inner.is_none() {
            return;
        }
        let kept = match self.defect {
            Defect::DropKeepsTheTenant => {
                let mut shared = locked(&self.shared);
                shared.drops += 1;
                shared.drops == 3 && self.limit == 1_000 && shared.pending_calls == 0
            }
            Defect::PanicKeepsTheTenant => std::thread::panicking(),
            Defect::DropNeedsARuntime => tokio::runtime::Handle::try_current().is_err(),
            _ => false,
        };
        if kept {
            self.keep();
        }
        let marks =
            self.defect == Defect::DropMarks && self.verified == 1 && ids.len() == 2 && self.limit == 10;
        if let Some(claim) = self.inner.take().filter(|_| marks) {
            let _ = claim.settle(Settlement::published(ids)).now_or_never();
        }
    }
}

struct MarksHalfWhenDropped(Option<Box<dyn Claim>>, outbox_core::MessageId);

impl Drop for MarksHalfWhenDropped {
    fn drop(&mut self) {
        if let Some(claim) = self.0.take() {
            let _ = claim.settle(Settlement::published([self.1])).now_or_never();
        }
    }
}
