//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;

use outbox_core::{ClaimOutcome, ClaimRequest, MessageId, Settling, StoreError, StoreOperation};
use outbox_sql::claim::{Held, Holder, Marked};
use outbox_sql::dialect::Dialect;
use outbox_sql::dialect::mysql::{
    COMMIT, Lock, MySqlStatements, ROLLBACK, Session, VERIFY, begin_claim, json_ids, lock, no_sentinel,
};
use outbox_sql::row::decode_batch;
use sqlx::AssertSqlSafe;
use sqlx::mysql::MySqlRow;

use super::error::{Context, is_conflict};
use super::store::MySqlStore;
use super::{ArmedConnection, row};

/// A session that holds a tenant by its transaction.
#[derive(Debug)]
struct HoldingSession {
    connection: ArmedConnection,
    statements: Arc<MySqlStatements>,
}

impl MySqlStore {
    /// Takes a tenant: begin, lock, and only then read.
    pub(super) async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let operation = StoreOperation::Claim;
        let context = self.context(operation);
        let failed = |error| context.error(error);
        let Some(mut connection) = self.lock(request).await? else { return Ok(ClaimOutcome::Held) };

        // A statement of its own: its snapshot is taken after the lock, and sees what the last holder marked.
        let (statement, excluded) = self.table.statements.claim_without(&request.excluded_subjects);
        let mut query = sqlx::query(AssertSqlSafe(statement)).bind(request.tenant_id.as_str().as_bytes());
        for subject in excluded {
            query = query.bind(subject);
        }
        let rows: Vec<MySqlRow> = query
            .bind(i64::from(request.limit.get()))
            .bind(i64::try_from(request.max_bytes).unwrap_or(i64::MAX))
            .fetch_all(connection.get().map_err(failed)?)
            .await
            .map_err(failed)?;
        let raw = rows.iter().map(row::message);
        let messages = decode_batch(raw, &self.table.description, Dialect::MySql, operation)?;
        let statements = Arc::clone(&self.table.statements);
        let (table, settling) = (Arc::clone(&self.display_name), self.settling);
        let holder = HoldingSession { connection, statements };
        Ok(Held { holder, table, settling, timeout: request.timeout, remembering: None }.claimed(messages))
    }

    /// A transaction that has the tenant's row locked; `None` if another has.
    async fn lock(&self, request: &ClaimRequest) -> Result<Option<ArmedConnection>, StoreError> {
        let context = self.context(StoreOperation::Claim);
        let failed = |error| context.error(error);
        let (statements, tenant) = (&self.table.statements, request.tenant_id.as_str());
        let begin = begin_claim(statements, request.timeout, self.max_silence);
        let mut connection = ArmedConnection::acquire(&self.pool).await.map_err(failed)?;
        match lock(&mut connection, statements, &begin, tenant).await.map_err(failed)? {
            Lock::Taken => Ok(Some(connection)),
            Lock::Held => {
                connection.run(ROLLBACK).await.map_err(failed)?;
                connection.give_back();
                Ok(None)
            }
            Lock::Conflict => Ok(None),
            Lock::NoSentinel => Err(no_sentinel(&self.display_name)),
        }
    }
}

impl Session for ArmedConnection {
    type Error = sqlx::Error;

    async fn run(&mut self, statements: &str) -> sqlx::Result<()> {
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(self.get()?).await?;
        Ok(())
    }

    async fn has_row(&mut self, question: &Arc<str>, tenant: &str) -> sqlx::Result<bool> {
        let question = sqlx::query(AssertSqlSafe(Arc::clone(question))).bind(tenant.as_bytes());
        Ok(question.fetch_optional(self.get()?).await?.is_some())
    }

    async fn add(&mut self, add: &Arc<str>, tenant: &str) -> sqlx::Result<()> {
        let add = sqlx::query(AssertSqlSafe(Arc::clone(add)));
        add.bind(tenant.as_bytes()).execute(self.get()?).await?;
        Ok(())
    }

    fn is_conflict(error: &sqlx::Error) -> bool {
        is_conflict(error)
    }
}

impl Holder for HoldingSession {
    type Error = sqlx::Error;

    fn error(error: sqlx::Error, operation: StoreOperation, table: &str, settling: Settling) -> StoreError {
        Context { operation, table, settling }.error(error)
    }

    async fn verify(&mut self) -> sqlx::Result<()> {
        self.connection.run(VERIFY).await
    }

    async fn mark(mut self, published: Vec<MessageId>) -> sqlx::Result<Marked> {
        let mark = sqlx::query(AssertSqlSafe(Arc::clone(&self.statements.mark)));
        let mark = mark.bind(json_ids(&published).into_bytes()).execute(self.connection.get()?).await?;
        // The settings come first in it: an error says that nothing is marked, or that nobody knows.
        self.connection.run(COMMIT).await?;
        self.connection.give_back();
        Ok(Marked { rows: mark.rows_affected(), committed: true })
    }

    async fn roll_back(mut self) -> sqlx::Result<()> {
        self.connection.run(ROLLBACK).await?;
        self.connection.give_back();
        Ok(())
    }
}
