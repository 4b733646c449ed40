//! What is stored, relayed and published: the message and the types it is made of.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;

use crate::Timestamp;

/// A row's id: its place in the outbox order and, together with the source, the deduplication key.
///
/// A store issues an id once and never again. On the wire, write it as text ([`Display`](fmt::Display)):
/// past 2^53 a JavaScript subscriber would round the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(i64);

impl MessageId {
    /// The id with this number.
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MessageId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Why a text is no tenant id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTenantId {
    /// The text is empty.
    #[error("a tenant id must not be empty")]
    Empty,
    /// The text has a NUL character, which PostgreSQL cannot hold.
    #[error("a tenant id must not contain a NUL character")]
    Nul,
}

/// Whose message it is: the unit that one relay holds at a time, and within which order is kept.
///
/// Compared by its bytes, on every database: `T` and `t`, `a` and `a ` are different tenants. Cloning is
/// cheap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

impl TenantId {
    /// The tenant with this id.
    ///
    /// # Errors
    /// [`InvalidTenantId`] if the text is empty or has a NUL character.
    pub fn new(id: impl Into<Arc<str>>) -> Result<Self, InvalidTenantId> {
        let id = id.into();
        if id.is_empty() {
            Err(InvalidTenantId::Empty)
        } else if id.contains('\0') {
            Err(InvalidTenantId::Nul)
        } else {
            Ok(Self(id))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for TenantId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TenantId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for TenantId {
    type Error = InvalidTenantId;

    fn try_from(id: &str) -> Result<Self, Self::Error> {
        Self::new(id)
    }
}

impl TryFrom<String> for TenantId {
    type Error = InvalidTenantId;

    fn try_from(id: String) -> Result<Self, Self::Error> {
        Self::new(id)
    }
}

impl FromStr for TenantId {
    type Err = InvalidTenantId;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        Self::new(id)
    }
}

/// A message's content, in the application's own encoding. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Payload(Bytes);

impl Payload {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The content as text, if it is UTF-8.
    ///
    /// # Errors
    /// [`Utf8Error`](std::str::Utf8Error) if it is not.
    pub fn as_str(&self) -> Result<&str, std::str::Utf8Error> {
        std::str::from_utf8(&self.0)
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no byte at all. An empty payload is not a tombstone: a tombstone has no payload.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes, without a copy.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl<const N: usize> From<&[u8; N]> for Payload {
    fn from(bytes: &[u8; N]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

/// What travels with a message beside its content: `traceparent`, a correlation id. Text by text, in the
/// order of the names; a name occurs once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// No headers.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Sets a header and gives back the value it had.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) -> Option<String> {
        self.0.insert(name.into(), value.into())
    }

    /// Takes a header out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// A header's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(headers: I) -> Self {
        Self(headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

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
    /// The content; `None` is the tombstone, the last word about a subject.
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

    /// How many bytes its payload has; 0 for a tombstone.
    pub fn payload_len(&self) -> usize {
        self.payload.as_ref().map_or(0, Payload::len)
    }
}

/// What an application appends to the outbox, in the transaction of the change that it tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewMessage {
    /// Whose message it is.
    pub tenant_id: TenantId,
    /// What sort of message it is.
    pub kind: String,
    /// Which thing it is about.
    pub subject_id: String,
    /// The content; `None` is the tombstone.
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

    /// The last word about a subject: a message without a content.
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
