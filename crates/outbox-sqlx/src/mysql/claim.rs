//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, Settlement, Settling, StoreError, StoreOperation, async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::dialect::mysql::{
    COMMIT, Lock, MySqlStatements, ROLLBACK, Session, VERIFY, begin_claim, json_ids, lock, no_sentinel,
};
use outbox_sql::row::decode_batch;
use outbox_sql::settlement::{HandedOut, check_marked};
use sqlx::mysql::MySqlRow;
use sqlx::{AssertSqlSafe, MySqlConnection};

use super::error::{Context, is_conflict};
use super::store::MySqlStore;
use super::{ArmedConnection, row};

/// A tenant held by a transaction. Its drop closes the connection, and the server rolls back.
#[derive(Debug)]
pub(super) struct MySqlClaim {
    /// `None` once the connection was lost.
    connection: Option<ArmedConnection>,
    statements: Arc<MySqlStatements>,
    table: Arc<str>,
    settling: Settling,
    timeout: Duration,
    handed_out: HandedOut,
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
        let claim = MySqlClaim {
            connection: Some(connection),
            statements: Arc::clone(&self.table.statements),
            table: Arc::clone(&self.display_name),
            settling: self.settling,
            timeout: request.timeout,
            handed_out: HandedOut::of(&messages),
        };
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim))))
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
            Lock::Held => end(connection, ROLLBACK).await.map_err(failed).map(|()| None),
            Lock::Conflict => Ok(None),
            Lock::NoSentinel => Err(no_sentinel(&self.display_name)),
        }
    }
}

impl Session for ArmedConnection {
    type Error = sqlx::Error;

    async fn run(&mut self, statements: &str) -> sqlx::Result<()> {
        run(self.get()?, statements).await
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

/// Runs a text of several statements.
async fn run(session: &mut MySqlConnection, statements: &str) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(session).await?;
    Ok(())
}

/// Ends the transaction, and gives the connection back as it was.
async fn end(mut connection: ArmedConnection, how: &'static str) -> sqlx::Result<()> {
    run(connection.get()?, how).await?;
    connection.give_back();
    Ok(())
}

impl MySqlClaim {
    fn context(&self, operation: StoreOperation) -> Context<'_> {
        Context { operation, table: &self.table, settling: self.settling }
    }

    fn lost(operation: StoreOperation) -> StoreError {
        StoreError::transient(operation, "the session that held the tenant was lost")
    }
}

#[async_trait]
impl Claim for MySqlClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let operation = StoreOperation::Verify;
        // Out of the claim meanwhile: what does not come to its end closes the connection.
        let mut connection = self.connection.take().ok_or_else(|| Self::lost(operation))?;
        let context = self.context(operation);
        let connection = within(self.timeout, operation, async {
            let session = connection.get().map_err(|error| context.error(error))?;
            run(session, VERIFY).await.map_err(|error| context.error(error))?;
            Ok(connection)
        })
        .await?;
        self.connection = Some(connection);
        Ok(())
    }

    async fn settle(mut self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let operation = StoreOperation::Settle;
        let published = self.handed_out.to_mark(settlement)?;
        let mut connection = self.connection.take().ok_or_else(|| Self::lost(operation))?;
        let context = self.context(operation);
        let failed = |error| context.error(error);
        within(self.timeout, operation, async {
            if published.is_empty() {
                return end(connection, ROLLBACK).await.map_err(failed);
            }
            let answer = sqlx::query(AssertSqlSafe(Arc::clone(&self.statements.mark)))
                .bind(json_ids(&published).into_bytes())
                .execute(connection.get().map_err(failed)?)
                .await
                .map_err(failed)?;
            // The settings come first in it: an error says that nothing is marked, or that nobody knows.
            end(connection, COMMIT).await.map_err(failed)?;
            check_marked(published.len(), answer.rows_affected(), &self.table)
        })
        .await
    }
}
