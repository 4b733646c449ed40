//! Asking for the safe id, and remembering watermarks.

use std::sync::Arc;

use outbox_core::{ClaimRequest, StoreError, StoreOperation};
use outbox_sql::dialect::postgres::watermark::{Remembering, SafeAnswer, Suitability, Watermark, Watermarks};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row};

use super::ArmedConnection;
use super::store::PostgresStore;

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
        connection: &mut ArmedConnection,
        request: &ClaimRequest,
    ) -> Result<(Vec<PgRow>, Option<Remembering>), StoreError> {
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
            let first = rows.first().map(|row| row.try_get(0)).transpose().map_err(failed)?;
            if !watermarks.read(request, &start, first) {
                return Ok((rows, Some(Remembering::new(watermarks, request, start))));
            }
        }
    }

    async fn read_from(
        &self,
        connection: &mut ArmedConnection,
        request: &ClaimRequest,
        from: Option<i64>,
    ) -> sqlx::Result<Vec<PgRow>> {
        let (excluded, statements) = (&*request.excluded_subjects, &self.table.statements);
        let claim = match (from.is_some(), excluded.is_empty()) {
            (false, true) => &statements.claim,
            (false, false) => &statements.claim_others,
            (true, true) => &statements.watermark.claim,
            (true, false) => &statements.watermark.claim_others,
        };
        let mut query = sqlx::query(AssertSqlSafe(Arc::clone(claim)))
            .persistent(self.table.named)
            .bind(request.tenant_id.as_str())
            .bind(i64::from(request.limit.get()))
            .bind(i64::try_from(request.max_bytes).unwrap_or(i64::MAX));
        if !excluded.is_empty() {
            query = query.bind(excluded);
        }
        if let Some(from) = from {
            query = query.bind(from);
        }
        query.fetch_all(connection.get()?).await
    }

    /// Asks for the safe id where it is time to. Both statements run before the claim reads.
    async fn ask_for_safe_id(
        &self,
        connection: &mut ArmedConnection,
        watermarks: &Watermarks,
    ) -> Result<(), StoreError> {
        let operation = StoreOperation::Claim;
        let context = self.context(operation);
        let Some(asking) = watermarks.asks() else { return Ok(()) };
        let asked = async {
            let connection = connection.get()?;
            let facts = self.ask_facts(connection).await?;
            let writers = Arc::clone(&self.table.statements.watermark.writers);
            let writers = sqlx::raw_sql(AssertSqlSafe(writers)).fetch_all(connection).await?;
            let writers = writers.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
            Ok((facts, writers))
        };
        let (facts, writers) = asked.await.map_err(|error| context.error(error))?;
        if let Some(objection) = facts.objection_of_claim(&self.display_name) {
            return Err(StoreError::permanent(operation, objection));
        }
        watermarks.told(&asking, SafeAnswer { last: facts.last, writers });
        Ok(())
    }

    pub(super) async fn ask_facts(&self, connection: &mut PgConnection) -> sqlx::Result<Suitability> {
        let facts = Arc::clone(&self.table.statements.watermark.facts);
        let row = sqlx::raw_sql(AssertSqlSafe(facts)).fetch_one(connection).await?;
        Ok(Suitability {
            kind: row.try_get(0)?,
            related: row.try_get(1)?,
            cache: row.try_get(2)?,
            increment: row.try_get(3)?,
            may_read: row.try_get(4)?,
            last: row.try_get(5)?,
            locks_are_shown: row.try_get(6)?,
        })
    }
}
