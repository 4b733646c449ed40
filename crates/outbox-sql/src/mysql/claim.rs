//! Taking a claim: lock, and only then read. What was taken, and the mark, are in `lock`.

use std::sync::Arc;

use outbox_core::{ClaimOutcome, ClaimRequest, StoreError, StoreOperation};

use super::driver::MySqlDriver;
use super::lock::Locked;
use super::store::MySqlStore;
use crate::claim::Taken;
use crate::deadline::within;
use crate::driver::Session as _;

const CLAIM: StoreOperation = StoreOperation::Claim;

impl<D: MySqlDriver> MySqlStore<D> {
    /// Takes a tenant: begin, lock, and only then read.
    ///
    /// # Errors
    /// What a statement or the decoding answers.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        within(request.timeout, CLAIM, async {
            self.know_server(CLAIM).await?;
            self.take(request).await
        })
        .await
        .inspect_err(|_| self.shared.server.forget())
    }

    async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let Some(mut holder) = Locked::lock(&self.shared, request).await? else {
            return Ok(ClaimOutcome::Held);
        };
        let rows = holder.read(request).await?;
        let messages = D::Session::messages(rows, self.shared.decoding(CLAIM))?;
        let table = Arc::clone(&self.shared.name);
        Ok(Taken { holder, table, timeout: request.timeout, ending: () }.claimed(messages))
    }
}
