//! A store of any ORM, as the tests know it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    BoxFuture, ClaimOutcome, ClaimRequest, Inspect, OutboxMessage, PendingRequest, ProbeRequest, Probed,
    Settling, Store, StoreError, TenantId, async_trait,
};
use outbox_sql::check::Finding;
use outbox_sql::postgres::Durability;
use outbox_sql::postgres::watermark::Watermark;

use crate::server::StorePool;

/// What can be chosen about a store. Each store has its part of it.
#[derive(Debug, Clone)]
pub enum Setting {
    /// What is done with a published row.
    Settling(Settling),
    /// Whether a commit waits for the disk: PostgreSQL's.
    Durability(Durability),
    /// How watermarks are kept: PostgreSQL's.
    Watermark(Watermark),
    /// Statements without names: those of sqlx on PostgreSQL.
    WithoutNamedStatements,
    /// How long nothing may be heard of a holder: MySQL's.
    MaxSilence(Duration),
}

/// A store of any ORM. A clone is the same store.
#[derive(Clone)]
pub struct AnyStore {
    store: Arc<dyn Stored>,
    /// The pool that it is on, if the tests know it.
    pool: Option<StorePool>,
}

impl AnyStore {
    /// A store, how one of its settings is chosen, and its check. A setting that it does not have is a panic.
    pub fn new<S: Inspect + Clone>(store: S, set: fn(S, Setting) -> S, check: Check<S>) -> Self {
        Self { store: Arc::new(Parts { store, set, check }), pool: None }
    }

    /// The same store, set in this way. What it knows of its database it shares with the one that it was made of.
    pub fn with(self, setting: Setting) -> Self {
        Self { store: self.store.with(setting), pool: self.pool }
    }

    /// The same store, settling like this.
    pub fn with_settling(self, settling: Settling) -> Self {
        self.with(Setting::Settling(settling))
    }

    /// The same store, with commits like this.
    pub fn with_durability(self, durability: Durability) -> Self {
        self.with(Setting::Durability(durability))
    }

    /// The same store, keeping watermarks like this.
    pub fn with_watermark(self, watermark: Watermark) -> Self {
        self.with(Setting::Watermark(watermark))
    }

    /// The same store, whose holder may be silent for so long.
    pub fn with_max_silence(self, max_silence: Duration) -> Self {
        self.with(Setting::MaxSilence(max_silence))
    }

    /// The same store, whose statements have no names.
    pub fn without_named_statements(self) -> Self {
        self.with(Setting::WithoutNamedStatements)
    }

    pub(crate) fn on(self, pool: StorePool) -> Self {
        Self { pool: Some(pool), ..self }
    }

    pub(crate) fn pool(&self) -> Option<&StorePool> {
        self.pool.as_ref()
    }

    /// Closes what it has open.
    pub async fn close(self) {
        if let Some(pool) = &self.pool {
            pool.close().await;
        }
    }

    /// What the store's own check finds, but for what is so of every server that the tests start.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.check_all().await.map(of_any_server)
    }

    /// What the store's own check finds.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn check_all(&self) -> Result<Vec<Finding>, StoreError> {
        self.store.check().await
    }

    /// A tenant's first pending messages.
    ///
    /// # Errors
    /// The store's.
    pub async fn pending(
        &self,
        tenant: &TenantId,
        limit: NonZeroU32,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        Inspect::pending(self, &PendingRequest::new(tenant.clone(), limit)).await
    }
}

#[async_trait]
impl Inspect for AnyStore {
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        self.store.store().pending(request).await
    }
}

#[async_trait]
impl Store for AnyStore {
    fn source(&self) -> &str {
        self.store.store().source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        self.store.store().max_claims()
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        self.store.store().probe(request).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.store.store().claim(request).await
    }
}

/// What was found, but for what is so of every server that the tests start: they wait for no disk.
pub fn of_any_server(mut found: Vec<Finding>) -> Vec<Finding> {
    let of_ours = ["fsync is off", "innodb_flush_method is nosync"];
    found.retain(|finding| !of_ours.iter().any(|ours| finding.message.starts_with(ours)));
    found
}

/// A store's check: `|store| Box::pin(store.check())`.
pub type Check<S> = for<'a> fn(&'a S) -> BoxFuture<'a, Result<Vec<Finding>, StoreError>>;

struct Parts<S> {
    store: S,
    set: fn(S, Setting) -> S,
    check: Check<S>,
}

trait Stored: Send + Sync {
    fn store(&self) -> &dyn Inspect;
    fn with(&self, setting: Setting) -> Arc<dyn Stored>;
    fn check(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>>;
}

impl<S: Inspect + Clone> Stored for Parts<S> {
    fn store(&self) -> &dyn Inspect {
        &self.store
    }

    fn with(&self, setting: Setting) -> Arc<dyn Stored> {
        Arc::new(Self { store: (self.set)(self.store.clone(), setting), set: self.set, check: self.check })
    }

    fn check(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        (self.check)(&self.store)
    }
}
