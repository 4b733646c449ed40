//! A store with watermarks, and what it asks of the table.

use std::sync::Arc;

use outbox_sql::postgres::PostgresStatements;
use outbox_sql::postgres::watermark::{Suitability, Watermark, Watermarks};
use sqlx::{AssertSqlSafe, PgConnection, Row};

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
    /// Watermarks are in memory, shared by clones made afterwards. Every error of the database forgets them.
    pub fn with_watermark(mut self, watermark: Watermark) -> Self {
        self.watermarks = Some(Arc::new(Watermarks::new(watermark)));
        self
    }

    pub(super) fn forget_watermarks(&self) {
        if let Some(watermarks) = &self.watermarks {
            watermarks.forget();
        }
    }
}

/// Asks what a watermark has to know of the table and the session.
pub(super) async fn facts(
    connection: &mut PgConnection,
    statements: &PostgresStatements,
) -> sqlx::Result<Suitability> {
    let facts = AssertSqlSafe(Arc::clone(&statements.watermark.facts));
    let row = sqlx::raw_sql(facts).fetch_one(connection).await?;
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
