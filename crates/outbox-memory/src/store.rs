//! The store: a table, seen by one replica.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::{
    ClaimOutcome, ClaimRequest, Claimed, Clock, Inspect, OldestPending, OutboxMessage, PendingRequest,
    ProbeRequest, Probed, Settling, Store, StoreError, StoreOperation, SystemClock, TenantId, Tenants,
    async_trait,
};

use crate::claim::MemoryClaim;
use crate::table::{Row, Rows, Table};

/// An outbox table in memory. A clone is a replica: another process's view of the same table.
///
/// Every operation answers at once, so that the timeouts of the requests never pass.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    pub(crate) table: Arc<Table>,
    pub(crate) clock: Arc<dyn Clock>,
    source: Arc<str>,
    settling: Settling,
}

impl MemoryStore {
    /// A new, empty table, with the machine's clock and the source `memory`.
    pub fn new() -> Self {
        Self {
            table: Arc::new(Table::new()),
            clock: Arc::new(SystemClock::new()),
            source: "memory".into(),
            settling: Settling::Mark,
        }
    }

    /// Takes the time from another clock: `occurred_at` of messages that do not say it, ages, and when a
    /// message was published. To be set before the store is cloned: a clone has the clock of its original.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source that publishers get. To be set before the store is cloned.
    pub fn with_source(mut self, source: impl Into<Arc<str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets what becomes of a published row. To be set before the store is cloned.
    pub fn with_settling(mut self, settling: Settling) -> Self {
        self.settling = settling;
        self
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Inspect for MemoryStore {
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        let table = self.table.lock();
        let rows = table.pending_of(&request.tenant_id).take(rows_of(request.limit));
        rows.map(|row| read(row, StoreOperation::Pending)).collect()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn source(&self) -> &str {
        &self.source
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        None
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        let table = self.table.lock();
        let now = self.clock.now();
        let oldest = |tenant: &TenantId| {
            let row = table.pending_of(tenant).next()?;
            let OutboxMessage { tenant_id, id, occurred_at, .. } = &row.message;
            Some(if row.readable {
                OldestPending::new(tenant_id.clone(), *id, *occurred_at, occurred_at.until(now))
            } else {
                OldestPending::unreadable(tenant_id.clone(), *id)
            })
        };
        match &request.tenants {
            Tenants::Named(tenants) => Ok(tenants.iter().filter_map(oldest).collect::<Vec<_>>().into()),
            Tenants::Discovered => Ok(table.pending.keys().filter_map(oldest).collect::<Vec<_>>().into()),
            other => Err(StoreError::permanent(
                StoreOperation::Probe,
                format!("this store does not know how to look for tenants by {other:?}"),
            )),
        }
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let tenant = &request.tenant_id;
        let (session, read) = {
            let mut table = self.table.lock();
            table.check_writable(StoreOperation::Claim)?;
            let Some(session) = table.hold(tenant) else {
                return Ok(ClaimOutcome::Held);
            };
            (session, batch(&table, request))
        };
        // From here on, an error drops the claim, which gives the tenant back.
        let mut claim = MemoryClaim {
            table: Arc::clone(&self.table),
            clock: Arc::clone(&self.clock),
            tenant: tenant.clone(),
            session,
            settling: self.settling,
            handed_out: BTreeSet::new(),
        };
        let messages = read?;
        claim.handed_out = messages.iter().map(|message| message.id).collect();
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim))))
    }
}

/// A tenant's oldest rows, as many as the request allows. One that cannot be read ends the batch before it,
/// and is an error where it is the first.
fn batch(table: &Rows, request: &ClaimRequest) -> Result<Vec<OutboxMessage>, StoreError> {
    let mut messages = Vec::new();
    let mut bytes = 0_usize;
    let others =
        table.pending_of(&request.tenant_id).filter(|row| !request.excludes(&row.message.subject_id));
    for row in others.take(rows_of(request.limit)) {
        if !messages.is_empty() && (bytes >= request.max_bytes || !row.readable) {
            break;
        }
        let message = read(row, StoreOperation::Claim)?;
        bytes = bytes.saturating_add(message.size());
        messages.push(message);
    }
    Ok(messages)
}

fn read(row: &Row, operation: StoreOperation) -> Result<OutboxMessage, StoreError> {
    if row.readable {
        Ok(row.message.clone())
    } else {
        let unreadable = format!(
            "message {}: its time and headers cannot be read; repair or delete the row",
            row.message.id
        );
        Err(StoreError::permanent(operation, unreadable))
    }
}

fn rows_of(limit: NonZeroU32) -> usize {
    usize::try_from(limit.get()).unwrap_or(usize::MAX)
}

impl Rows {
    /// Refuses an operation that would have to write on a table that cannot be written to.
    pub(crate) fn check_writable(&self, operation: StoreOperation) -> Result<(), StoreError> {
        if self.read_only {
            Err(StoreError::permanent(operation, "the table is read-only: claim on the primary"))
        } else {
            Ok(())
        }
    }
}
