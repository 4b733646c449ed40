//! The memory store behind gates: each operation is a request on its way and an answer on its way, and either may
//! fail, be late or be lost.

use std::num::NonZeroU32;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, MessageId, ProbeRequest, Probed, Settlement, Store,
    StoreError, StoreOperation, async_trait,
};
use outbox_memory::MemoryStore;

use crate::gate::Gate;
use crate::ledger::{ClaimRecord, Heard, Session, State};
use crate::world::{Behind, Shared, World};

/// The table, as one relay reaches it.
#[derive(Debug, Clone)]
pub(crate) struct WorldStore {
    pub(crate) world: Shared,
    pub(crate) memory: MemoryStore,
    pub(crate) replica: usize,
}

/// What becomes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    /// It fails, and nothing was done.
    Fails,
    /// It is done, and fails all the same.
    LosesAnswer,
    Panics,
}

struct Plan {
    before: Duration,
    fate: Fate,
    after: Duration,
}

impl World {
    fn plan(&mut self, timeout: Duration) -> Plan {
        let (mut before, mut after) = (self.latency(), self.latency());
        let (store, is_down) = (self.setting.faults.store, self.down.database);
        let mut fate = Fate::Done;
        if self.is_faulty && is_down {
            fate = Fate::Fails;
        } else if self.is_faulty && self.is_one_of(store) {
            fate = match self.rng.u32(..8) {
                0..4 => Fate::Fails,
                4..7 => Fate::LosesAnswer,
                _ => Fate::Panics,
            };
            if self.rng.u32(..6) == 0 {
                after = Duration::MAX;
            }
        }
        // A store gives up by its deadline; one of eight overruns it all the same.
        if before.saturating_add(after) > timeout && self.rng.u32(..8) > 0 {
            fate = if before >= timeout { Fate::Fails } else { Fate::LosesAnswer };
            before = before.min(timeout);
            after = timeout.saturating_sub(before);
        }
        Plan { before, fate, after }
    }
}

impl WorldStore {
    async fn through<T>(
        &self,
        operation: StoreOperation,
        timeout: Duration,
        act: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let Plan { before, fate, after } = self.world.lock().plan(timeout);
        Gate::new(&self.world, self.replica, Behind::Request, before).await;
        let done = match fate {
            Fate::Fails | Fate::Panics => Err(StoreError::transient(operation, "it fails on purpose")),
            Fate::Done | Fate::LosesAnswer => act.await,
        };
        Gate::new(&self.world, self.replica, Behind::Answer, after).await;
        match fate {
            Fate::Panics => resume_unwind(Box::new("the store panics, on purpose")),
            Fate::LosesAnswer => {
                drop(done);
                Err(StoreError::transient(operation, "the answer was lost, on purpose"))
            }
            Fate::Done | Fate::Fails => done,
        }
    }

    /// Takes the tenant and writes down who holds what.
    async fn take(
        &self,
        request: &ClaimRequest,
        asked: Duration,
        timeout: Duration,
    ) -> Result<ClaimOutcome, StoreError> {
        if self.world.lock().replicas[self.replica].is_dead() {
            return Err(StoreError::transient(StoreOperation::Claim, "who asked is dead"));
        }
        let ClaimOutcome::Claimed(Claimed { messages, claim, .. }) = self.memory.claim(request).await? else {
            return Ok(ClaimOutcome::Held);
        };
        let session: Session = Arc::new(Mutex::new(Some(claim)));
        let mut world = self.world.lock();
        let tenant = world.setting.tenant(&request.tenant_id);
        let ids: Vec<i64> = messages.iter().map(|message| message.id.get()).collect();
        let (read, count) = (world.tick(), ids.len());
        let record = ClaimRecord {
            replica: self.replica,
            tenant,
            session: Arc::clone(&session),
            proven: asked,
            read,
            heard: None,
            messages: ids,
            states: vec![State::Waiting; count],
            told: vec![Heard::Nothing; count],
            begun_at: vec![Duration::ZERO; count],
            is_lost: false,
            is_settling: false,
            is_over: false,
            settled: 0,
            settle_asked: (Duration::ZERO, false),
        };
        world.judge_holder(self.replica, tenant);
        let claim = world.ledger.claimed(record);
        world.tell(|world| {
            let ids = &world.ledger.claims[claim].messages;
            format!("relay {} holds {} and reads {ids:?}", self.replica, request.tenant_id)
        });
        drop(world);
        let claim = WorldClaim { store: self.clone(), session, claim, timeout };
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim))))
    }
}

#[async_trait]
impl Store for WorldStore {
    fn source(&self) -> &str {
        self.memory.source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        None
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        self.through(StoreOperation::Probe, request.timeout, self.memory.probe(request)).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let asked = {
            let mut world = self.world.lock();
            world.judge_request(self.replica, request);
            world.now
        };
        self.through(StoreOperation::Claim, request.timeout, self.take(request, asked, request.timeout)).await
    }
}

/// A tenant held.
struct WorldClaim {
    store: WorldStore,
    session: Session,
    claim: usize,
    timeout: Duration,
}

impl WorldClaim {
    fn take_session(&self) -> Option<Box<dyn Claim>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn lost(operation: StoreOperation) -> StoreError {
    StoreError::transient(operation, "the session was ended")
}

#[async_trait]
impl Claim for WorldClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let store = self.store.clone();
        let this = &*self;
        let act = async move {
            let mut inner = this.take_session().ok_or_else(|| lost(StoreOperation::Verify))?;
            let answer = inner.verify().await;
            *this.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(inner);
            answer
        };
        store.through(StoreOperation::Verify, self.timeout, act).await
    }

    async fn settle(self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let store = self.store.clone();
        let ids: Vec<i64> = settlement.published.iter().map(|id: &MessageId| id.get()).collect();
        store.world.lock().judge_settlement(self.claim, &ids);
        let this = &*self;
        let act = async move {
            let inner = this.take_session().ok_or_else(|| lost(StoreOperation::Settle))?;
            inner.settle(settlement).await?;
            let mut world = this.store.world.lock();
            for id in &ids {
                world.ledger.message_mut(*id).is_marked = true;
            }
            world.tell(|world| {
                let tenant = &world.setting.tenants[world.ledger.claims[this.claim].tenant];
                format!("relay {} marks {ids:?} and gives {tenant} back", this.store.replica)
            });
            Ok(())
        };
        store.through(StoreOperation::Settle, self.timeout, act).await
    }
}

impl Drop for WorldClaim {
    fn drop(&mut self) {
        let gave_up = self.take_session().is_some();
        let mut world = self.store.world.lock();
        world.ledger.over(self.claim);
        if gave_up {
            world.tell(|world| {
                let tenant = &world.setting.tenants[world.ledger.claims[self.claim].tenant];
                format!("the claim of relay {} on {tenant} is dropped", self.store.replica)
            });
        }
    }
}
