//! From a connection to the claim: what is locked, and what is read then.

use std::sync::Arc;

use outbox_core::{
    ClaimOutcome, ClaimRequest, MessageId, OutboxMessage, Settling, StoreError, StoreOperation,
};

use super::lock::{Lock, lock, no_sentinel};
use super::{BeginClaim, COMMIT, Locking, MySqlStatements, ROLLBACK, VERIFY};
use crate::claim::{Holder, Marked, Taken};
use crate::settlement::Fate;
use crate::table::OutboxTable;

/// A session as far as handing messages over needs it.
pub trait Reader: Locking {
    /// A row as the driver has it.
    type Row: Send;

    /// Reads with a statement of [`MySqlStatements::claim_without`], whose parameters are the tenant as bytes, these
    /// subjects, limit and bytes.
    fn read(
        &mut self,
        statement: &Arc<str>,
        excluded: &[&[u8]],
        request: &ClaimRequest,
    ) -> impl Future<Output = Result<Vec<Self::Row>, Self::Error>> + Send;

    /// The messages of these rows; see [`decode_batch`](crate::row::decode_batch).
    ///
    /// # Errors
    /// What that answers.
    fn messages(rows: Vec<Self::Row>, table: &OutboxTable) -> Result<Vec<OutboxMessage>, StoreError>;
}

/// What a store knows when it claims.
#[derive(Debug, Clone, Copy)]
pub struct Claiming<'a> {
    /// The table.
    pub table: &'a OutboxTable,
    /// Its schema and name, for a person to read.
    pub display_name: &'a Arc<str>,
    /// Its statements.
    pub statements: &'a MySqlStatements,
    /// What becomes of a published row.
    pub settling: Settling,
}

impl Claiming<'_> {
    /// Takes a tenant: begin, lock, and only then read.
    ///
    /// # Errors
    /// What a statement or the decoding answers; a permanent error if the [sentinel](super::SENTINEL) is missing.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn take<R: Reader>(
        &self,
        mut reader: R,
        begin: &BeginClaim,
        request: &ClaimRequest,
    ) -> Result<ClaimOutcome, StoreError> {
        let failed = |error| R::error(error, StoreOperation::Claim, self.display_name, self.settling);
        let tenant = request.tenant_id.as_str();
        match lock(&mut reader, self.statements, begin, tenant).await.map_err(failed)? {
            Lock::Taken => {}
            Lock::Held => {
                reader.run(ROLLBACK).await.map_err(failed)?;
                reader.release();
                return Ok(ClaimOutcome::Held);
            }
            Lock::Conflict => return Ok(ClaimOutcome::Held),
            Lock::NoSentinel => return Err(no_sentinel(self.display_name)),
        }

        // A statement of its own: its snapshot is taken after the lock, and sees what the last holder marked.
        let (statement, excluded) = self.statements.claim_without(&request.excluded_subjects);
        let rows = reader.read(&statement, &excluded, request).await.map_err(failed)?;
        let messages = R::messages(rows, self.table)?;
        let holder = Held { reader, table: Arc::clone(self.display_name), settling: self.settling };
        let table = Arc::clone(self.display_name);
        Ok(Taken { holder, table, timeout: request.timeout, ending: () }.claimed(messages))
    }
}

/// A session whose transaction has a tenant.
#[derive(Debug)]
struct Held<R> {
    reader: R,
    table: Arc<str>,
    settling: Settling,
}

impl<R: Reader> Held<R> {
    fn failed(&self, operation: StoreOperation, error: R::Error) -> StoreError {
        R::error(error, operation, &self.table, self.settling)
    }
}

impl<R: Reader> Holder for Held<R> {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let heard = self.reader.run(VERIFY).await;
        heard.map_err(|error| self.failed(StoreOperation::Verify, error))
    }

    async fn mark(mut self, published: &[MessageId]) -> Result<Marked, StoreError> {
        let rows = self.reader.mark(published).await;
        let rows = rows.map_err(|error| self.failed(StoreOperation::Settle, error))?;
        // The settings come first in it: an error says that nothing is marked, or that nobody knows.
        if let Err(error) = self.reader.run(COMMIT).await {
            let fate = Fate::Unknown(self.failed(StoreOperation::Settle, error));
            return Ok(Marked { rows, fate });
        }
        self.reader.release();
        Ok(Marked { rows, fate: Fate::Committed })
    }

    async fn roll_back(mut self) -> Result<(), StoreError> {
        let rolled_back = self.reader.run(ROLLBACK).await;
        rolled_back.map_err(|error| self.failed(StoreOperation::Settle, error))?;
        self.reader.release();
        Ok(())
    }
}

impl MySqlStatements {
    /// What a claim reads, which leaves these subjects out and walks past their rows: [`Self::claim`] if there are
    /// none. Parameters: tenant, the subjects answered as bytes, limit, bytes.
    ///
    /// The subjects are those given, the last one repeated: a few lengths, so that few statements are prepared.
    pub fn claim_without<'s>(&self, subjects: &'s [String]) -> (Arc<str>, Vec<&'s [u8]>) {
        let Some(last) = subjects.last() else { return (Arc::clone(&self.claim), Vec::new()) };
        let padded: Vec<&[u8]> = subjects
            .iter()
            .chain(std::iter::repeat(last))
            .map(String::as_bytes)
            .take(subjects.len().next_power_of_two())
            .collect();
        (self.claim_others(padded.len()).into(), padded)
    }

    /// As `claim`, of other subjects than so many.
    fn claim_others(&self, subjects: usize) -> String {
        let (before, behind) = &self.claim_others;
        format!("{before}{}{behind}", vec!["?"; subjects.max(1)].join(", "))
    }
}
