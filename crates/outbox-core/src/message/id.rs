//! What a message is known by: its id and its tenant.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

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
