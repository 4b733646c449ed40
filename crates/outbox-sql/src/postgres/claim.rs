//! From a session that tried to lock a tenant to the claim: what is read, and from where on.

use std::collections::BTreeSet;
use std::sync::Arc;

use outbox_core::{ClaimOutcome, ClaimRequest, OutboxMessage, Settling, StoreError, StoreOperation};

use super::PostgresStatements;
use super::error::relay_rights;
use super::watermark::{Remembering, SafeAnswer, Suitability, Watermarks};
use crate::claim::{Holder, Taken};
use crate::table::OutboxTable;

/// What became of locking a tenant in a transaction, as [`PostgresStatements::lock`] answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantLock {
    /// Whether the transaction has it.
    pub is_taken: bool,
    /// Whether rows may be settled; `None` where the server answered null.
    pub may_settle: Option<bool>,
}

/// A session as far as handing messages over needs it.
pub trait Reader: Holder {
    /// A row as the driver has it.
    type Row: Send;

    /// Reads with [this statement](PostgresStatements::claim_from): its parameters are the tenant, limit and bytes,
    /// the excluded subjects if there are any, and the id if there is one.
    fn read(
        &mut self,
        statement: &Arc<str>,
        request: &ClaimRequest,
        from: Option<i64>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, Self::Error>> + Send;

    /// A row's id, if it can be read.
    fn id(row: &Self::Row) -> Option<i64>;

    /// The messages of these rows; see [`decode_batch`](crate::row::decode_batch).
    ///
    /// # Errors
    /// What that answers.
    fn messages(rows: Vec<Self::Row>, table: &OutboxTable) -> Result<Vec<OutboxMessage>, StoreError>;

    /// Asks for what [`WatermarkStatements::facts`](super::WatermarkStatements::facts) answers.
    fn facts(&mut self) -> impl Future<Output = Result<Suitability, Self::Error>> + Send;

    /// Asks for what [`WatermarkStatements::writers`](super::WatermarkStatements::writers) answers.
    fn writers(&mut self) -> impl Future<Output = Result<BTreeSet<String>, Self::Error>> + Send;
}

/// What a store knows when it claims.
#[derive(Debug, Clone, Copy)]
pub struct Claiming<'a> {
    /// The table.
    pub table: &'a OutboxTable,
    /// Its schema and name, for a person to read.
    pub display_name: &'a Arc<str>,
    /// Its statements.
    pub statements: &'a PostgresStatements,
    /// What becomes of a published row.
    pub settling: Settling,
    /// `None` if the store has none.
    pub watermarks: Option<&'a Arc<Watermarks>>,
}

impl Claiming<'_> {
    /// Hands over what a session that locked a tenant reads now: its snapshot is taken after the lock, and sees what
    /// the last holder marked.
    ///
    /// # Errors
    /// What a statement or the decoding answers; a permanent error if rows could be read and not settled, or if the
    /// table is one that a watermark cannot serve.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn hand_over<R: Reader>(
        &self,
        mut reader: R,
        lock: TenantLock,
        request: &ClaimRequest,
    ) -> Result<ClaimOutcome, StoreError> {
        if !lock.is_taken {
            reader.roll_back().await.map_err(|error| self.failed::<R>(error))?;
            return Ok(ClaimOutcome::Held);
        }
        if lock.may_settle != Some(true) {
            let (table, rights) = (self.display_name, relay_rights(self.settling));
            let refused = format!("{table} could be read, and nothing settled: grant {rights} on {table}");
            return Err(StoreError::permanent(StoreOperation::Claim, refused));
        }
        let (rows, remembering) = self.read(&mut reader, request).await?;
        let messages = R::messages(rows, self.table)?;
        let table = Arc::clone(self.display_name);
        let (settling, timeout) = (self.settling, request.timeout);
        Ok(Taken { holder: reader, table, settling, timeout, remembering }.claimed(messages))
    }

    async fn read<R: Reader>(
        &self,
        reader: &mut R,
        request: &ClaimRequest,
    ) -> Result<(Vec<R::Row>, Option<Remembering>), StoreError> {
        let failed = |error| self.failed::<R>(error);
        let excludes = !request.excluded_subjects.is_empty();
        let Some(watermarks) = self.watermarks else {
            let statement = self.statements.claim_from(None, excludes);
            return Ok((reader.read(statement, request, None).await.map_err(failed)?, None));
        };
        self.ask_for_safe_id(reader, watermarks).await?;
        loop {
            let start = watermarks.start(&request.tenant_id);
            let statement = self.statements.claim_from(start.from, excludes);
            let rows = reader.read(statement, request, start.from).await.map_err(failed)?;
            if !watermarks.read(request, &start, rows.first().and_then(R::id)) {
                return Ok((rows, Some(Remembering::new(watermarks, request, start))));
            }
        }
    }

    /// Asks for the safe id where it is time to. Both statements run before the claim reads, one after the other.
    async fn ask_for_safe_id<R: Reader>(
        &self,
        reader: &mut R,
        watermarks: &Watermarks,
    ) -> Result<(), StoreError> {
        let Some(asking) = watermarks.asks() else { return Ok(()) };
        let facts = reader.facts().await.map_err(|error| self.failed::<R>(error))?;
        let writers = reader.writers().await.map_err(|error| self.failed::<R>(error))?;
        if let Some(objection) = facts.objection_of_claim(self.display_name) {
            return Err(StoreError::permanent(StoreOperation::Claim, objection));
        }
        watermarks.told(&asking, SafeAnswer { last: facts.last, writers });
        Ok(())
    }

    fn failed<H: Holder>(&self, error: H::Error) -> StoreError {
        H::error(error, StoreOperation::Claim, self.display_name, self.settling)
    }
}

impl PostgresStatements {
    /// What a claim reads with: from an id on if there is one, and without some subjects if it excludes any.
    pub fn claim_from(&self, from: Option<i64>, excludes: bool) -> &Arc<str> {
        match (from, excludes) {
            (None, false) => &self.claim,
            (None, true) => &self.claim_others,
            (Some(_), false) => &self.watermark.claim,
            (Some(_), true) => &self.watermark.claim_others,
        }
    }
}
