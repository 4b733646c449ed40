//! The table that every replica shares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outbox_core::{MessageId, OutboxMessage, TenantId, Timestamp};

/// Names one claim among all there ever were on the table: the session that holds a tenant.
pub(crate) type Session = u64;

/// A table behind its lock. The lock is held for single steps only, never across an await.
#[derive(Debug)]
pub(crate) struct Table(Mutex<Rows>);

impl Table {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Rows::new()))
    }

    /// Takes the lock. No step leaves the rows half changed, so that a panic of its caller spoils nothing.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is committed, what of it is pending, and who holds whom.
#[derive(Debug)]
pub(crate) struct Rows {
    last_id: i64,
    last_session: Session,
    pub(crate) committed: BTreeMap<MessageId, Row>,
    /// The index of what is unpublished: tenant, then id.
    pub(crate) pending: BTreeMap<TenantId, BTreeSet<MessageId>>,
    pub(crate) holders: BTreeMap<TenantId, Session>,
    pub(crate) read_only: bool,
}

/// A committed row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) message: OutboxMessage,
    /// Whether its time and headers can be read.
    pub(crate) readable: bool,
    pub(crate) published_at: Option<Timestamp>,
}

impl Rows {
    fn new() -> Self {
        Self {
            last_id: 0,
            last_session: 0,
            committed: BTreeMap::new(),
            pending: BTreeMap::new(),
            holders: BTreeMap::new(),
            read_only: false,
        }
    }

    /// Draws the next id. It is never drawn again, whatever becomes of the row.
    pub(crate) fn draw_id(&mut self) -> MessageId {
        self.last_id = self.last_id.saturating_add(1);
        MessageId::new(self.last_id)
    }

    /// Lets the next id be `next`, or the one that would have come if that is higher.
    pub(crate) fn skip_ids(&mut self, next: MessageId) {
        self.last_id = self.last_id.max(next.get().saturating_sub(1));
    }

    /// Makes a row visible.
    pub(crate) fn insert(&mut self, row: Row) {
        let message = &row.message;
        self.pending.entry(message.tenant_id.clone()).or_default().insert(message.id);
        self.committed.insert(message.id, row);
    }

    /// A tenant's unpublished rows, in id order.
    pub(crate) fn pending_of(&self, tenant: &TenantId) -> impl Iterator<Item = &Row> {
        self.pending.get(tenant).into_iter().flatten().filter_map(|id| self.committed.get(id))
    }

    /// Takes a free tenant.
    pub(crate) fn hold(&mut self, tenant: &TenantId) -> Option<Session> {
        if self.holders.contains_key(tenant) {
            return None;
        }
        self.last_session += 1;
        self.holders.insert(tenant.clone(), self.last_session);
        Some(self.last_session)
    }

    /// Whether this session still holds the tenant.
    pub(crate) fn holds(&self, tenant: &TenantId, session: Session) -> bool {
        self.holders.get(tenant) == Some(&session)
    }

    /// Gives a tenant back, if this session still holds it.
    pub(crate) fn release(&mut self, tenant: &TenantId, session: Session) {
        if self.holds(tenant, session) {
            self.holders.remove(tenant);
        }
    }

    /// Marks a row as published.
    pub(crate) fn mark(&mut self, tenant: &TenantId, id: MessageId, at: Timestamp) {
        if let Some(row) = self.committed.get_mut(&id) {
            row.published_at.get_or_insert(at);
        }
        if let Some(ids) = self.pending.get_mut(tenant) {
            ids.remove(&id);
            if ids.is_empty() {
                self.pending.remove(tenant);
            }
        }
    }
}
