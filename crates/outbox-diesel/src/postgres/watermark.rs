//! Asking for the safe id, and remembering watermarks.

use std::sync::Arc;

use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text};
use diesel_async::AsyncPgConnection;
use outbox_core::{ClaimRequest, StoreError, StoreOperation};
use outbox_sql::dialect::postgres::watermark::{Remembering, SafeAnswer, Suitability, Watermark, Watermarks};

use super::row::{MessageColumns, MessageRow};
use super::store::PostgresStore;
use crate::connection::{ArmedConnection, Failure};
use crate::statement::Statement;

type Armed = ArmedConnection<AsyncPgConnection>;
type FactsColumns = (Text, Bool, Nullable<BigInt>, Nullable<BigInt>, Nullable<Bool>, Nullable<BigInt>, Bool);
type FactsRow = (String, bool, Option<i64>, Option<i64>, Option<bool>, Option<i64>, bool);

impl PostgresStore {
    /// Lets claims and probes begin at a *watermark* of the tenant: above the messages that this store settled, and
    /// not at dead index entries of theirs, of which a large drain or an old snapshot leaves many.
    ///
    /// Nothing is overtaken by it that would not be without. It never rises above the id up to which every message
    /// is known to be final, which a claim asks for now and then. That holds where every id is drawn from the
    /// column's own sequence, one at a time, by an `INSERT` into the table itself: a claim and
    /// [`check`](Self::check) refuse a partitioned table and a sequence that hands out several at once, and the role
    /// needs `SELECT` on the sequence. What is pending below a watermark all the same (an id drawn by hand, a row
    /// that was made pending again) is found by a look from zero, each [`with_look_every`](Watermark::with_look_every).
    ///
    /// Watermarks are in memory, shared by clones made afterwards. Every error forgets them.
    pub fn with_watermark(mut self, watermark: Watermark) -> Self {
        self.watermarks = Some(Arc::new(Watermarks::new(watermark)));
        self
    }

    pub(super) fn forget_watermarks(&self) {
        if let Some(watermarks) = &self.watermarks {
            watermarks.forget();
        }
    }

    /// Reads what a claim hands over, in a statement of its own: its snapshot is taken after the lock, and sees what
    /// the last holder marked.
    pub(super) async fn read_batch(
        &self,
        connection: &mut Armed,
        request: &ClaimRequest,
    ) -> Result<(Vec<MessageRow>, Option<Remembering>), StoreError> {
        let context = self.context(StoreOperation::Claim);
        let failed = |error| context.error(error);
        let Some(watermarks) = &self.watermarks else {
            let rows = self.read_from(connection, request, None).await.map_err(failed)?;
            return Ok((rows, None));
        };
        self.ask_for_safe_id(connection, watermarks).await?;
        loop {
            let start = watermarks.start(&request.tenant_id);
            let rows = self.read_from(connection, request, start.from).await.map_err(failed)?;
            let first = rows.first().and_then(|row| row.0.id.as_ref().ok().copied());
            if !watermarks.read(request, &start, first) {
                return Ok((rows, Some(Remembering::new(watermarks, request, start))));
            }
        }
    }

    async fn read_from(
        &self,
        connection: &mut Armed,
        request: &ClaimRequest,
        from: Option<i64>,
    ) -> Result<Vec<MessageRow>, Failure> {
        let (excluded, statements) = (&*request.excluded_subjects, &self.table.statements);
        let claim = match (from.is_some(), excluded.is_empty()) {
            (false, true) => &statements.claim,
            (false, false) => &statements.claim_others,
            (true, true) => &statements.watermark.claim,
            (true, false) => &statements.watermark.claim_others,
        };
        let mut read = Statement::<Pg, MessageColumns>::new(claim)
            .bind::<Text>(request.tenant_id.as_str())
            .bind::<BigInt>(i64::from(request.limit.get()))
            .bind::<BigInt>(i64::try_from(request.max_bytes).unwrap_or(i64::MAX));
        if !excluded.is_empty() {
            read = read.bind::<Array<Text>>(excluded);
        }
        if let Some(from) = from {
            read = read.bind::<BigInt>(from);
        }
        Ok(read.rows(connection.get()?).await?)
    }

    /// Asks for the safe id where it is time to. Both statements run before the claim reads, one after the other.
    async fn ask_for_safe_id(
        &self,
        connection: &mut Armed,
        watermarks: &Watermarks,
    ) -> Result<(), StoreError> {
        let operation = StoreOperation::Claim;
        let context = self.context(operation);
        let Some(asking) = watermarks.asks() else { return Ok(()) };
        let asked = async {
            let connection = connection.get()?;
            let facts = self.ask_facts(connection).await?;
            let writers = Statement::<Pg, Text>::new(&self.table.statements.watermark.writers);
            let writers: Vec<String> = writers.rows(connection).await?;
            Ok((facts, writers.into_iter().collect()))
        };
        let (facts, writers) = asked.await.map_err(|error: Failure| context.error(error))?;
        if let Some(objection) = facts.objection_of_claim(&self.display_name) {
            return Err(StoreError::permanent(operation, objection));
        }
        watermarks.told(&asking, SafeAnswer { last: facts.last, writers });
        Ok(())
    }

    pub(super) async fn ask_facts(&self, connection: &mut AsyncPgConnection) -> Result<Suitability, Failure> {
        let facts = Statement::<Pg, FactsColumns>::new(&self.table.statements.watermark.facts);
        let facts: FactsRow = facts.one_row(connection).await?;
        let (kind, related, cache, increment, may_read, last, locks_are_shown) = facts;
        Ok(Suitability { kind, related, cache, increment, may_read, last, locks_are_shown })
    }
}
