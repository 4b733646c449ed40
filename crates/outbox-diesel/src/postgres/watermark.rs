//! A store with watermarks, and what it asks of the table.

use std::sync::Arc;

use diesel::pg::Pg;
use diesel::sql_types::{BigInt, Bool, Nullable, Text};
use diesel_async::AsyncPgConnection;
use outbox_sql::postgres::PostgresStatements;
use outbox_sql::postgres::watermark::{Suitability, Watermark, Watermarks};

use super::store::PostgresStore;
use crate::connection::Failure;
use crate::statement::Statement;

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
    connection: &mut AsyncPgConnection,
    statements: &PostgresStatements,
) -> Result<Suitability, Failure> {
    let facts = Statement::<Pg, FactsColumns>::new(&statements.watermark.facts);
    let (kind, related, cache, increment, may_read, last, locks_are_shown): FactsRow =
        facts.one_row(connection).await?;
    Ok(Suitability { kind, related, cache, increment, may_read, last, locks_are_shown })
}
