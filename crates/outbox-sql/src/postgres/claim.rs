//! Taking a claim: lock, and only then read. What was taken, and the mark, are in `lock`.

use std::sync::Arc;

use outbox_core::{ClaimOutcome, ClaimRequest, StoreError, StoreOperation};

use super::driver::PostgresDriver;
use super::lock::Locked;
use super::store::PostgresStore;
use crate::claim::Taken;
use crate::deadline::within;
use crate::driver::Session as _;

impl<D: PostgresDriver> PostgresStore<D> {
    /// Takes a tenant: begin, lock, and only then read.
    ///
    /// # Errors
    /// What a statement or the decoding answers.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let taking = within(request.timeout, StoreOperation::Claim, self.take(request));
        taking.await.inspect_err(|_| self.shared.forget_watermarks())
    }

    async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let Some(mut holder) = Locked::lock(&self.shared, request).await? else {
            return Ok(ClaimOutcome::Held);
        };
        let (rows, ending) = holder.read(request).await?;
        let messages = D::Session::messages(rows, self.shared.decoding(StoreOperation::Claim))?;
        let table = Arc::clone(&self.shared.name);
        Ok(Taken { holder, table, timeout: request.timeout, ending }.claimed(messages))
    }
}
