//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;

use diesel::mysql::Mysql;
use diesel::sql_types::{BigInt, Binary, Untyped};
use diesel_async::SimpleAsyncConnection;
use outbox_core::{ClaimOutcome, ClaimRequest, MessageId, Settling, StoreError, StoreOperation};
use outbox_sql::claim::{Held, Holder, Marked};
use outbox_sql::dialect::Dialect;
use outbox_sql::dialect::mysql::{
    COMMIT, Lock, MySqlStatements, ROLLBACK, Session, VERIFY, begin_claim, json_ids, lock, no_sentinel,
};
use outbox_sql::row::decode_batch;

use super::ArmedConnection;
use super::error::{Context, is_conflict};
use super::row::Values;
use super::store::MySqlStore;
use crate::connection::Failure;
use crate::statement::Statement;

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
        let Some(mut connection) = self.lock(request).await? else { return Ok(ClaimOutcome::Held) };

        // A statement of its own: its snapshot is taken after the lock, and sees what the last holder marked.
        let rows = self.read(&mut connection, request).await.map_err(|error| context.error(error))?;
        let raw = rows.iter().map(Values::message);
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
        let mut connection =
            ArmedConnection::acquire(&self.pool).await.map_err(|error| failed(error.into()))?;
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

impl Holder for HoldingSession {
    type Error = Failure;

    fn error(error: Failure, operation: StoreOperation, table: &str, settling: Settling) -> StoreError {
        Context { operation, table, settling }.error(error)
    }

    async fn verify(&mut self) -> Result<(), Failure> {
        self.connection.run(VERIFY).await
    }

    async fn mark(mut self, published: Vec<MessageId>) -> Result<Marked, Failure> {
        let json = json_ids(&published).into_bytes();
        let mark = Statement::<Mysql, Untyped>::new(&self.statements.mark).bind::<Binary>(json);
        let marked = mark.changes(self.connection.get()?).await?;
        // The settings come first in it: an error says that nothing is marked, or that nobody knows.
        self.connection.run(COMMIT).await?;
        self.connection.give_back();
        Ok(Marked { rows: u64::try_from(marked).unwrap_or_default(), committed: true })
    }

    async fn roll_back(mut self) -> Result<(), Failure> {
        self.connection.run(ROLLBACK).await?;
        self.connection.give_back();
        Ok(())
    }
}
