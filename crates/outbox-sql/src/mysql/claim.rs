//! From a connection to the claim: what is locked, and what is read then.

use std::sync::Arc;

use outbox_core::{ClaimOutcome, ClaimRequest, OutboxMessage, Settling, StoreError, StoreOperation};

use super::lock::{Lock, lock, no_sentinel};
use super::{BeginClaim, Locking, MySqlStatements};
use crate::claim::Taken;
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
                reader.roll_back().await.map_err(failed)?;
                return Ok(ClaimOutcome::Held);
            }
            Lock::Conflict => return Ok(ClaimOutcome::Held),
            Lock::NoSentinel => return Err(no_sentinel(self.display_name)),
        }

        // A statement of its own: its snapshot is taken after the lock, and sees what the last holder marked.
        let (statement, excluded) = self.statements.claim_without(&request.excluded_subjects);
        let rows = reader.read(&statement, &excluded, request).await.map_err(failed)?;
        let messages = R::messages(rows, self.table)?;
        let (table, settling) = (Arc::clone(self.display_name), self.settling);
        let taken = Taken { holder: reader, table, settling, timeout: request.timeout, remembering: None };
        Ok(taken.claimed(messages))
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
