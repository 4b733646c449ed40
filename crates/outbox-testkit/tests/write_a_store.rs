//! A whole store, and the suite on it: the code of `docs/write-a-store.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, Inspect, MessageId, NewMessage, OldestPending, OutboxMessage,
    PendingRequest, ProbeRequest, Probed, Settlement, Store, StoreError, StoreOperation, TenantId, Tenants,
    Timestamp, async_trait,
};
use outbox_testkit::{Capability, Harness, OpenWrite, Unsupported, conformance};

#[derive(Default)]
struct Table {
    last_id: i64,
    pending: Vec<OutboxMessage>,
    last_session: u64,
    held: BTreeMap<TenantId, u64>,
}

#[derive(Clone, Default)]
struct ListStore(Arc<Mutex<Table>>);

impl ListStore {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws ids for these rows. An id that was drawn is never drawn again.
    fn prepare(&self, rows: &[NewMessage]) -> Vec<OutboxMessage> {
        let mut table = self.table();
        let prepare = |row: &NewMessage| {
            table.last_id += 1;
            OutboxMessage::new(
                MessageId::new(table.last_id),
                row.tenant_id.clone(),
                row.kind.clone(),
                row.subject_id.clone(),
                row.payload.clone(),
                row.headers.clone(),
                row.occurred_at.unwrap_or_else(|| SystemTime::now().into()),
            )
        };
        rows.iter().map(prepare).collect()
    }

    /// Makes rows visible. Rows that commit late may have lower ids than those that are there.
    fn commit(&self, rows: Vec<OutboxMessage>) {
        let mut table = self.table();
        table.pending.extend(rows);
        table.pending.sort_by_key(|message| message.id);
    }
}

impl Table {
    fn of<'a>(&'a self, tenant: &'a TenantId) -> impl Iterator<Item = &'a OutboxMessage> {
        self.pending.iter().filter(move |message| message.tenant_id == *tenant)
    }

    /// Takes a free tenant for a new session.
    fn hold(&mut self, tenant: &TenantId) -> Option<u64> {
        if self.held.contains_key(tenant) {
            return None;
        }
        self.last_session += 1;
        self.held.insert(tenant.clone(), self.last_session);
        Some(self.last_session)
    }
}

#[async_trait]
impl Store for ListStore {
    fn source(&self) -> &'static str {
        "list"
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        None
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        let now = Timestamp::from(SystemTime::now());
        let mut seen = BTreeSet::new();
        let mut oldest = Vec::new();
        for message in &self.table().pending {
            let asked_for = match &request.tenants {
                Tenants::Named(tenants) => tenants.contains(&message.tenant_id),
                Tenants::Discovered => true,
                other => {
                    let refused = format!("this store cannot look for tenants by {other:?}");
                    return Err(StoreError::permanent(StoreOperation::Probe, refused));
                }
            };
            if asked_for && seen.insert(message.tenant_id.clone()) {
                let age = message.occurred_at.until(now);
                oldest.push(OldestPending::new(
                    message.tenant_id.clone(),
                    message.id,
                    message.occurred_at,
                    age,
                ));
            }
        }
        Ok(oldest.into())
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let tenant = &request.tenant_id;
        let Some(session) = self.table().hold(tenant) else { return Ok(ClaimOutcome::Held) };
        let (store, tenant_id) = (self.clone(), tenant.clone());
        let mut claim = Box::new(ListClaim { store, tenant: tenant_id, session, handed_out: Vec::new() });
        let mut messages = Vec::new();
        let mut bytes = 0;
        let table = self.table();
        let others = table.of(tenant).filter(|message| !request.excludes(&message.subject_id));
        for message in others.take(request.limit.get() as usize) {
            if !messages.is_empty() && bytes >= request.max_bytes {
                break;
            }
            bytes += message.size();
            messages.push(message.clone());
        }
        drop(table);
        claim.handed_out = messages.iter().map(|message| message.id).collect();
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, claim)))
    }
}

#[async_trait]
impl Inspect for ListStore {
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        Ok(self.table().of(&request.tenant_id).take(request.limit.get() as usize).cloned().collect())
    }
}

struct ListClaim {
    store: ListStore,
    tenant: TenantId,
    session: u64,
    handed_out: Vec<MessageId>,
}

impl ListClaim {
    /// A lost session comes back with the next claim: the error is a transient one.
    fn check_held(&self, operation: StoreOperation) -> Result<(), StoreError> {
        match self.store.table().held.get(&self.tenant) {
            Some(holder) if *holder == self.session => Ok(()),
            _ => Err(StoreError::transient(operation, "the session that held the tenant was ended")),
        }
    }
}

#[async_trait]
impl Claim for ListClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        self.check_held(StoreOperation::Verify)
    }

    async fn settle(self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        self.check_held(StoreOperation::Settle)?;
        let published = &settlement.published;
        if let Some(foreign) = published.iter().find(|id| !self.handed_out.contains(id)) {
            let refused = format!("message {foreign} was not handed out by this claim; nothing is marked");
            return Err(StoreError::permanent(StoreOperation::Settle, refused));
        }
        self.store.table().pending.retain(|message| !published.contains(&message.id));
        Ok(())
    }
}

impl Drop for ListClaim {
    fn drop(&mut self) {
        let mut table = self.store.table();
        if table.held.get(&self.tenant) == Some(&self.session) {
            table.held.remove(&self.tenant);
        }
    }
}

struct Mine(ListStore);

impl Harness for Mine {
    type Store = ListStore;
    type Write = OpenWrite;
    const CANNOT: &'static [Capability] = &[
        Capability::CountLeftovers,
        Capability::HostileRow,
        Capability::ReadOnly,
        Capability::AnotherTable,
        Capability::DeletePublished,
        Capability::LargeIds,
    ];

    async fn open() -> Self {
        Self(ListStore::default())
    }

    async fn connect(&self) -> ListStore {
        self.0.clone()
    }

    async fn write(&self, rows: &[NewMessage]) -> OpenWrite {
        let (store, rows) = (self.0.clone(), self.0.prepare(rows));
        OpenWrite::new(rows.iter().map(|row| row.id).collect(), async move { store.commit(rows) })
    }

    async fn write_beside(&self, rows: &[NewMessage]) -> Result<OpenWrite, Unsupported> {
        Ok(self.write(rows).await)
    }

    async fn kill_sessions(&self) -> Result<(), Unsupported> {
        self.0.table().held.clear();
        Ok(())
    }
}

conformance!(Mine);
