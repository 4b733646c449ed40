//! The store and the claim on a tenant: what the relay needs of a database.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{MessageId, OutboxMessage, StoreError, TenantId, Timestamp};

/// What the relay needs of an outbox table: it looks for work here, and takes a tenant.
///
/// The relay, health and the conformance suite call it; `outbox-memory`, `outbox-sqlx` and you implement it.
/// What it must keep to, law by law, is [the contract](crate::contract); `outbox-testkit` tests each law.
///
/// # Cancellation
/// Any future of a store may be dropped at any await. Nothing is marked then, no lock, transaction or
/// connection is left over, and the tenant is free for others. The relay does not do that by itself: it hands
/// its deadline to the store in each request, and lets an operation that overruns it run to its end unheard.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The outbox's name, the same for every replica and for ever: subscribers deduplicate on (source, id).
    fn source(&self) -> &str;

    /// How many claims this store can hold at once, if there is a bound: its pool's size, where a claim keeps
    /// a connection. `None` is no bound.
    fn max_claims(&self) -> Option<NonZeroU32>;

    /// The oldest unpublished message of each tenant asked for, in one round trip; a tenant that has none is
    /// absent. Its cost grows with the tenants that have something, never with the pending rows.
    ///
    /// # Errors
    /// [`StoreError`], if the database does not answer, or takes no writers: a standby, say. A row that cannot be read
    /// is no error here: see [`OldestPending::unreadable`].
    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError>;

    /// Takes a tenant exclusively and hands over its oldest unpublished messages; says at once if it is held,
    /// and never waits for the holder. What a store has to make for a new tenant may take it a moment.
    ///
    /// # Errors
    /// [`StoreError`], if the database does not answer, cannot be written to, or the oldest row cannot be
    /// read. A later row that cannot be read ends the batch before it.
    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError>;
}

/// A store that others use too.
#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn source(&self) -> &str {
        (**self).source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        (**self).max_claims()
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        (**self).probe(request).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        (**self).claim(request).await
    }
}

/// A tenant held exclusively. Dropping it is the crash path: nothing is marked, and the tenant is free.
#[async_trait]
pub trait Claim: Send {
    /// Asks whether the claim still lives. The answer tells of the time when it was asked.
    ///
    /// # Errors
    /// [`StoreError`], if it does not, or if that cannot be told. The holder must stop publishing.
    async fn verify(&mut self) -> Result<(), StoreError>;

    /// Marks exactly the messages of the settlement as published and gives the tenant back. An empty
    /// settlement only gives it back.
    ///
    /// # Errors
    /// [`StoreError`], if an id is not one that this claim handed out (nothing is marked then), or if it is
    /// not known to be marked: the messages are published again.
    async fn settle(self: Box<Self>, settlement: Settlement) -> Result<(), StoreError>;
}

/// Which tenants a relay serves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tenants {
    /// These, whether they have messages or not.
    Named(Arc<[TenantId]>),
    /// Whichever have unpublished messages.
    Discovered,
}

/// What a probe asks for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProbeRequest {
    /// Which tenants.
    pub tenants: Tenants,
    /// How long the store may take; past it, it gives up and closes the connection. Default 30 s.
    pub timeout: Duration,
}

impl ProbeRequest {
    /// A probe of these tenants, with the default timeout.
    pub fn new(tenants: Tenants) -> Self {
        Self { tenants, timeout: DEFAULT_STORE_TIMEOUT }
    }

    /// Sets how long the store may take.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// What a probe answers. A store that knows nothing but the messages answers `oldest.into()`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probed {
    /// The oldest message of each tenant that has one, in any order.
    pub oldest: Vec<OldestPending>,
    /// Why this may not be the server that applications write to, although it still takes claims: it is read-only by
    /// default, say. Health is red and says this; claims go on. Default none.
    pub unfit: Option<String>,
    /// What tells this server, since it was started, from every other. Where it changes, observers hear of it. Default
    /// none: not known.
    pub server: Option<String>,
}

impl From<Vec<OldestPending>> for Probed {
    fn from(oldest: Vec<OldestPending>) -> Self {
        Self { oldest, ..Self::default() }
    }
}

/// A tenant's oldest unpublished message: the one with the lowest id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestPending {
    /// Whose it is.
    pub tenant_id: TenantId,
    /// Its id.
    pub id: MessageId,
    /// When it happened and how old it is; `None` if the row does not say so in a readable way.
    pub time: Option<PendingSince>,
}

/// When a pending message happened, and its age by the store's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingSince {
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Its age by the store's own clock; zero if it happened in that clock's future.
    pub age: Duration,
}

impl OldestPending {
    /// A tenant's oldest unpublished message.
    pub fn new(tenant_id: TenantId, id: MessageId, occurred_at: Timestamp, age: Duration) -> Self {
        Self { tenant_id, id, time: Some(PendingSince { occurred_at, age }) }
    }

    /// One whose time cannot be read (an infinite one). Health counts its tenant as behind.
    pub fn unreadable(tenant_id: TenantId, id: MessageId) -> Self {
        Self { tenant_id, id, time: None }
    }
}

/// What a claim asks for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClaimRequest {
    /// Whom to hold.
    pub tenant_id: TenantId,
    /// How many messages to hand over, at most.
    pub limit: NonZeroU32,
    /// How many bytes to hand over, about: a message is handed over while those before it have fewer, so that there is
    /// always at least one. What counts is [`OutboxMessage::size`]: whatever can be large, payload and headers above all,
    /// unpacked. A store may count headers as their JSON text is in its database, with its escapes; it must not
    /// count more than that. Default 16 MiB.
    pub max_bytes: usize,
    /// Subjects whose messages are left out: they stay pending, and the oldest of the *others* are handed over.
    /// At most [`MAX_EXCLUDED_SUBJECTS`](Self::MAX_EXCLUDED_SUBJECTS); a store need not take more. Compared by
    /// bytes. What it costs grows with the rows of these subjects. Default none.
    pub excluded_subjects: Arc<[String]>,
    /// How long the store may take for each operation of this claim (the claim itself, a verification, the
    /// settlement); past it, it gives up and closes the connection. Default 30 s.
    pub timeout: Duration,
}

impl ClaimRequest {
    /// How many subjects a claim leaves out at most.
    pub const MAX_EXCLUDED_SUBJECTS: usize = 100;

    /// The relay excludes no subject with more bytes than this. What it keeps of subjects has a bound so: the tenant
    /// of a longer one that is refused waits, instead of the subject alone.
    pub const MAX_EXCLUDED_SUBJECT_BYTES: usize = 1_024;

    /// A claim on a tenant's oldest messages, with the default bytes and timeout, and no subject left out.
    pub fn new(tenant_id: TenantId, limit: NonZeroU32) -> Self {
        Self {
            tenant_id,
            limit,
            max_bytes: DEFAULT_MAX_BYTES,
            excluded_subjects: Arc::default(),
            timeout: DEFAULT_STORE_TIMEOUT,
        }
    }

    /// Sets about how many bytes to hand over.
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Leaves the messages of these subjects out.
    pub fn with_excluded_subjects(mut self, subjects: impl Into<Arc<[String]>>) -> Self {
        self.excluded_subjects = subjects.into();
        self
    }

    /// Whether the messages of this subject are left out.
    pub fn excludes(&self, subject_id: &str) -> bool {
        self.excluded_subjects.iter().any(|excluded| excluded == subject_id)
    }

    /// Sets how long the store may take for each operation.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

pub(crate) const DEFAULT_MAX_BYTES: usize = 16 * 1024 * 1024;
pub(crate) const DEFAULT_STORE_TIMEOUT: Duration = Duration::from_secs(30);

/// What came of a claim.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClaimOutcome {
    /// Another holds the tenant.
    Held,
    /// The tenant is held by this claim.
    Claimed(Claimed),
}

/// A tenant held, with its oldest unpublished messages.
#[non_exhaustive]
pub struct Claimed {
    /// In id order; empty if the tenant has none.
    pub messages: Vec<OutboxMessage>,
    /// What holds the tenant.
    pub claim: Box<dyn Claim>,
}

impl Claimed {
    /// The messages that a claim hands over.
    pub fn new(messages: Vec<OutboxMessage>, claim: Box<dyn Claim>) -> Self {
        Self { messages, claim }
    }
}

impl fmt::Debug for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimed").field("messages", &self.messages).finish_non_exhaustive()
    }
}

/// What became of a claim's messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// The messages that were published; the rest of the batch stays pending.
    pub published: Vec<MessageId>,
}

impl Settlement {
    /// Nothing was published: only gives the tenant back.
    pub fn release() -> Self {
        Self::default()
    }

    /// These were published.
    pub fn published(ids: impl IntoIterator<Item = MessageId>) -> Self {
        Self { published: ids.into_iter().collect() }
    }
}
