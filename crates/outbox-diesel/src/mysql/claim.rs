//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;
use std::time::Duration;

use diesel::mysql::Mysql;
use diesel::sql_types::{BigInt, Binary, Untyped};
use diesel_async::SimpleAsyncConnection;
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

use super::ArmedConnection;
use super::error::{Context, is_conflict};
use super::row::Values;
use super::store::MySqlStore;
use crate::connection::Failure;
use crate::statement::Statement;

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
        let Some(mut connection) = self.lock(request).await? else { return Ok(ClaimOutcome::Held) };

        // A statement of its own: its snapshot is taken after the lock, and sees what the last holder marked.
        let rows = self.read(&mut connection, request).await.map_err(|error| context.error(error))?;
        let raw = rows.iter().map(Values::message);
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
        let mut connection =
            ArmedConnection::acquire(&self.pool).await.map_err(|error| failed(error.into()))?;
        match lock(&mut connection, statements, &begin, tenant).await.map_err(failed)? {
            Lock::Taken => Ok(Some(connection)),
            Lock::Held => end(connection, ROLLBACK).await.map_err(failed).map(|()| None),
            Lock::Conflict => Ok(None),
            Lock::NoSentinel => Err(no_sentinel(&self.display_name)),
        }
    }

    async fn read(
        &self,
        connection: &mut ArmedConnection,
        request: &ClaimRequest,
    ) -> Result<Vec<Values>, Failure> {
        let (statement, excluded) = self.table.statements.claim_without(&request.excluded_subjects);
        let claim = Statement::<Mysql, Untyped>::new(&statement)
            .bind::<Binary>(request.tenant_id.as_str().as_bytes());
        let claim = excluded.into_iter().fold(claim, Statement::bind::<Binary>);
        let claim = claim
            .bind::<BigInt>(i64::from(request.limit.get()))
            .bind::<BigInt>(i64::try_from(request.max_bytes).unwrap_or(i64::MAX));
        Ok(claim.rows(connection.get()?).await?)
    }
}

impl Session for ArmedConnection {
    type Error = Failure;

    async fn run(&mut self, statements: &str) -> Result<(), Failure> {
        Ok(self.get()?.batch_execute(statements).await?)
    }

    async fn has_row(&mut self, question: &Arc<str>, tenant: &str) -> Result<bool, Failure> {
        let question = Statement::<Mysql, Untyped>::new(question).bind::<Binary>(tenant.as_bytes());
        let rows: Vec<Values> = question.rows(self.get()?).await?;
        Ok(!rows.is_empty())
    }

    async fn add(&mut self, add: &Arc<str>, tenant: &str) -> Result<(), Failure> {
        let add = Statement::<Mysql, Untyped>::new(add).bind::<Binary>(tenant.as_bytes());
        add.changes(self.get()?).await?;
        Ok(())
    }

    fn is_conflict(failure: &Failure) -> bool {
        is_conflict(failure)
    }
}

/// Ends the transaction, and gives the connection back as it was.
async fn end(mut connection: ArmedConnection, how: &'static str) -> Result<(), Failure> {
    connection.run(how).await?;
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

/// Marks or deletes, commits, and answers how many rows.
async fn mark(
    statements: &MySqlStatements,
    mut connection: ArmedConnection,
    json: String,
) -> Result<usize, Failure> {
    let mark = Statement::<Mysql, Untyped>::new(&statements.mark).bind::<Binary>(json.into_bytes());
    let marked = mark.changes(connection.get()?).await?;
    // The settings come first in it: an error says that nothing is marked, or that nobody knows.
    end(connection, COMMIT).await?;
    Ok(marked)
}

#[async_trait]
impl Claim for MySqlClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let operation = StoreOperation::Verify;
        // Out of the claim meanwhile: what does not come to its end closes the connection.
        let mut connection = self.connection.take().ok_or_else(|| Self::lost(operation))?;
        let context = self.context(operation);
        let connection = within(self.timeout, operation, async {
            connection.run(VERIFY).await.map_err(|error| context.error(error))?;
            Ok(connection)
        })
        .await?;
        self.connection = Some(connection);
        Ok(())
    }

    async fn settle(mut self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let operation = StoreOperation::Settle;
        let published = self.handed_out.to_mark(settlement)?;
        let connection = self.connection.take().ok_or_else(|| Self::lost(operation))?;
        let (statements, table, settling) = (&self.statements, &self.table, self.settling);
        let context = Context { operation, table, settling };
        let failed = |error| context.error(error);
        within(self.timeout, operation, async {
            if published.is_empty() {
                return end(connection, ROLLBACK).await.map_err(failed);
            }
            let marked = mark(statements, connection, json_ids(&published)).await.map_err(failed)?;
            check_marked(published.len(), u64::try_from(marked).unwrap_or_default(), table)
        })
        .await
    }
}
