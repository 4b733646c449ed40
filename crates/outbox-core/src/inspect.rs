//! What is asked of an outbox table by those who look at it: operators and tests.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::store::DEFAULT_STORE_TIMEOUT;
use crate::{OutboxMessage, Store, StoreError, TenantId};

/// A store that can be looked at: what it answers takes no claim and changes no row. The relay never asks.
///
/// The conformance suite reads by it what an operation left, so that a store which is tested has it.
///
/// # Cancellation
/// As that of a [`Store`].
#[async_trait]
pub trait Inspect: Store {
    /// Reads a tenant's first pending messages, the lowest id first. It does not matter who holds the tenant.
    ///
    /// # Errors
    /// [`StoreError`], if the database does not answer or a row cannot be read.
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError>;
}

/// A store that others use too.
#[async_trait]
impl<S: Inspect + ?Sized> Inspect for Arc<S> {
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        (**self).pending(request).await
    }
}

/// Which pending messages to read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PendingRequest {
    /// Whose.
    pub tenant_id: TenantId,
    /// How many at most.
    pub limit: NonZeroU32,
    /// How long the store may take; past it, it gives up and closes the connection. Default 30 s.
    pub timeout: Duration,
}

impl PendingRequest {
    /// A tenant's first `limit` messages, with the default timeout.
    pub fn new(tenant_id: TenantId, limit: NonZeroU32) -> Self {
        Self { tenant_id, limit, timeout: DEFAULT_STORE_TIMEOUT }
    }

    /// Sets how long the store may take.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}
