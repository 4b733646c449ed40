//! What a test asks about the table, beside what a relay does.

use outbox_core::{OutboxMessage, TenantId, Timestamp};

use crate::MemoryStore;

/// A message that was marked as published.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The message.
    pub message: OutboxMessage,
    /// When it was marked, by the store's clock.
    pub published_at: Timestamp,
}

impl MemoryStore {
    /// Every message that is marked as published, in id order. None if publishing deletes the row.
    pub fn published(&self) -> Vec<Published> {
        let table = self.table.lock();
        let published = table.committed.values().filter_map(|row| {
            row.published_at.map(|published_at| Published { message: row.message.clone(), published_at })
        });
        published.collect()
    }

    /// Every committed message that is not marked, in id order, of whichever tenant.
    pub fn unpublished(&self) -> Vec<OutboxMessage> {
        let table = self.table.lock();
        let unpublished = table.committed.values().filter(|row| row.published_at.is_none());
        unpublished.map(|row| row.message.clone()).collect()
    }

    /// Deletes what is marked as published, and answers how many messages that were. Their ids are not drawn
    /// again.
    pub fn purge_published(&self) -> usize {
        let mut table = self.table.lock();
        let before = table.committed.len();
        table.committed.retain(|_, row| row.published_at.is_none());
        before - table.committed.len()
    }

    /// The tenants that are held by a claim, in the order of their names.
    pub fn held(&self) -> Vec<TenantId> {
        self.table.lock().holders.keys().cloned().collect()
    }

    /// Ends every session that holds a claim, as an operator, a fail-over or a cut connection would: the
    /// tenants are free at once, and `verify` and `settle` of those claims fail. Answers how many there were.
    pub fn kill_sessions(&self) -> usize {
        let mut table = self.table.lock();
        let killed = table.holders.len();
        table.holders.clear();
        killed
    }

    /// Makes the table read-only, as a standby is, or writable again. Claims and settlements of a read-only
    /// table fail; appends are not refused, since they stand for what the primary replicates.
    pub fn set_read_only(&self, read_only: bool) {
        self.table.lock().read_only = read_only;
    }
}
