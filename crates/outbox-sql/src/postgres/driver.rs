//! What only PostgreSQL's drivers are asked.

use outbox_core::TenantId;

use super::PostgresStatements;
use crate::check::Finding;
use crate::driver::{Answer, Driver, Question, Session};

/// Where the sessions of a store on PostgreSQL come from.
pub trait PostgresDriver: Driver<Session: PostgresSession> {
    /// Whether statements are prepared under names. If not, a read is in a transaction, so that a pooler keeps
    /// preparing and running it on one server session.
    fn names_statements(&self) -> bool;

    /// What a transaction pooler before the server means for this driver.
    fn pooled() -> Finding;
}

/// A session on PostgreSQL.
pub trait PostgresSession: Session {
    /// A row's id, if it can be read.
    fn id(row: &Self::Row) -> Option<i64>;

    /// Runs the statements that begin a transaction and tries to [lock](PostgresStatements::lock) a tenant in it, in as
    /// few round trips as the driver can.
    fn lock(
        &mut self,
        begin: String,
        statements: &PostgresStatements,
        tenant: &TenantId,
    ) -> impl Future<Output = Result<Answer, Self::Error>> + Send;

    /// Marks, and answers how many rows it were.
    fn mark(&mut self, mark: Question<'_>) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Commits after that, and answers whether it was done: a `COMMIT` can be answered by a rollback.
    fn commit(&mut self) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}
