//! The writing side: transactions and what they append.

use std::sync::Arc;

use outbox_core::{Clock, MessageId, NewMessage, OutboxMessage, TenantId};

use crate::MemoryStore;
use crate::table::{Row, Table};

impl MemoryStore {
    /// Begins a transaction. Any number may be open at once.
    pub fn begin(&self) -> MemoryTransaction {
        MemoryTransaction { table: Arc::clone(&self.table), clock: Arc::clone(&self.clock), rows: Vec::new() }
    }

    /// Appends one message in a transaction of its own and commits it.
    pub fn append(&self, message: NewMessage) -> MessageId {
        let mut transaction = self.begin();
        let id = transaction.append(message);
        transaction.commit();
        id
    }

    /// Appends many messages in one transaction and commits it. Answers their ids, in the order given.
    pub fn append_all(&self, messages: impl IntoIterator<Item = NewMessage>) -> Vec<MessageId> {
        let mut transaction = self.begin();
        let ids = transaction.append_all(messages);
        transaction.commit();
        ids
    }

    /// Appends and commits a row whose time and headers cannot be read, as another program could leave one
    /// behind: it stops its tenant until somebody repairs it. For tests of what happens then.
    pub fn append_unreadable(&self, tenant: TenantId) -> MessageId {
        let mut transaction = self.begin();
        let id = transaction.draw(NewMessage::tombstone(tenant, "unreadable", "unreadable"), false);
        transaction.commit();
        id
    }

    /// Lets the next id be at least `next`. For tests with large ids.
    pub fn skip_ids(&self, next: MessageId) {
        self.table.lock().skip_ids(next);
    }
}

/// An open transaction of a writer. Nobody sees its rows before [`commit`](Self::commit); dropped, it is
/// rolled back.
///
/// Ids are drawn at the append, as a database's sequence does it: a transaction that commits late brings
/// lower ids after higher ones, and one that is rolled back leaves a gap.
#[derive(Debug)]
#[must_use = "a dropped transaction is rolled back"]
pub struct MemoryTransaction {
    table: Arc<Table>,
    clock: Arc<dyn Clock>,
    rows: Vec<Row>,
}

impl MemoryTransaction {
    /// Appends a message and answers its id. A message that does not say when it happened gets the store's
    /// time.
    pub fn append(&mut self, message: NewMessage) -> MessageId {
        self.draw(message, true)
    }

    /// Appends many messages and answers their ids, in the order given.
    pub fn append_all(&mut self, messages: impl IntoIterator<Item = NewMessage>) -> Vec<MessageId> {
        messages.into_iter().map(|message| self.append(message)).collect()
    }

    /// Makes every row visible, all at once.
    pub fn commit(mut self) {
        let mut table = self.table.lock();
        for row in self.rows.drain(..) {
            table.insert(row);
        }
    }

    /// Forgets every row. Their ids are not drawn again.
    pub fn rollback(self) {}

    fn draw(&mut self, message: NewMessage, readable: bool) -> MessageId {
        let id = self.table.lock().draw_id();
        let occurred_at = message.occurred_at.unwrap_or_else(|| self.clock.now());
        let NewMessage { tenant_id, kind, subject_id, payload, headers, .. } = message;
        let message = OutboxMessage::new(id, tenant_id, kind, subject_id, payload, headers, occurred_at);
        self.rows.push(Row { message, readable, published_at: None });
        id
    }
}
