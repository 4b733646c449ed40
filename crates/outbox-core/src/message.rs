//! What is stored, relayed and published.

mod content;
mod id;

pub use content::{Headers, Payload};
pub use id::{InvalidTenantId, MessageId, TenantId};

use crate::Timestamp;

/// A committed row of the outbox, as the relay hands it to the publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxMessage {
    /// Its place in the outbox order, and the deduplication key within its source.
    pub id: MessageId,
    /// Whose message it is.
    pub tenant_id: TenantId,
    /// What sort of message it is, in the application's words: `order.placed`.
    pub kind: String,
    /// Which thing it is about: the key that a compacting reader keeps the last message of.
    pub subject_id: String,
    /// The content; `None` is a *tombstone*: the subject is gone.
    pub payload: Option<Payload>,
    /// What travels with it.
    pub headers: Headers,
    /// When it happened, by the writer's or the database's clock.
    pub occurred_at: Timestamp,
}

impl OutboxMessage {
    /// A message as a store reads it.
    pub fn new(
        id: MessageId,
        tenant_id: TenantId,
        kind: impl Into<String>,
        subject_id: impl Into<String>,
        payload: Option<Payload>,
        headers: Headers,
        occurred_at: Timestamp,
    ) -> Self {
        Self {
            id,
            tenant_id,
            kind: kind.into(),
            subject_id: subject_id.into(),
            payload,
            headers,
            occurred_at,
        }
    }

    /// How many bytes it has in all that can be large: tenant, kind, subject, payload and headers, these as JSON text.
    /// What the bounds of a batch and of a slice count. Headers count as written with spaces, `{"a": "1"}`: no less
    /// than a database has of what this library wrote.
    pub fn size(&self) -> usize {
        let texts = self.tenant_id.as_str().len() + self.kind.len() + self.subject_id.len();
        texts.saturating_add(self.payload_len()).saturating_add(self.headers.json_len())
    }

    /// How many bytes its payload has; 0 for a tombstone.
    pub fn payload_len(&self) -> usize {
        self.payload.as_ref().map_or(0, Payload::len)
    }
}

/// What an application appends to the outbox, within the transaction that changes its data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewMessage {
    /// Whose message it is.
    pub tenant_id: TenantId,
    /// What sort of message it is.
    pub kind: String,
    /// Which thing it is about.
    pub subject_id: String,
    /// The content; `None` is a tombstone.
    pub payload: Option<Payload>,
    /// What travels with it.
    pub headers: Headers,
    /// When it happened; `None` leaves that to the store's clock at the append.
    pub occurred_at: Option<Timestamp>,
}

impl NewMessage {
    /// A message with a content.
    pub fn new(
        tenant_id: TenantId,
        kind: impl Into<String>,
        subject_id: impl Into<String>,
        payload: impl Into<Payload>,
    ) -> Self {
        Self { payload: Some(payload.into()), ..Self::tombstone(tenant_id, kind, subject_id) }
    }

    /// A tombstone: a message without a content, which says that its subject is gone.
    pub fn tombstone(tenant_id: TenantId, kind: impl Into<String>, subject_id: impl Into<String>) -> Self {
        Self {
            tenant_id,
            kind: kind.into(),
            subject_id: subject_id.into(),
            payload: None,
            headers: Headers::new(),
            occurred_at: None,
        }
    }

    /// Adds a header; one of the same name is replaced.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Says when it happened, instead of the store's clock at the append.
    pub fn with_occurred_at(mut self, occurred_at: Timestamp) -> Self {
        self.occurred_at = Some(occurred_at);
        self
    }
}
