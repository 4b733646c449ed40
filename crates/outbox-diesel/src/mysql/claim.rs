//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;

use diesel::mysql::Mysql;
use diesel::sql_types::{BigInt, Binary, Untyped};
use diesel_async::SimpleAsyncConnection;
use outbox_core::{
    ClaimOutcome, ClaimRequest, MessageId, OutboxMessage, Settling, StoreError, StoreOperation,
};
use outbox_sql::OutboxTable;
use outbox_sql::dialect::Dialect;
use outbox_sql::mysql::claim::{Claiming, Reader};
use outbox_sql::mysql::{Locking, MySqlStatements, begin_claim, json_ids};
use outbox_sql::row::decode_batch;

use super::ArmedConnection;
use super::error::{Context, is_conflict};
use super::row::Values;
use super::store::MySqlStore;
use crate::connection::Failure;
use crate::statement::Statement;

/// A session with the transaction of a claim.
#[derive(Debug)]
struct Session {
    connection: ArmedConnection,
    statements: Arc<MySqlStatements>,
}

impl MySqlStore {
    /// Takes a tenant: begin, lock, and only then read.
    pub(super) async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let context = self.context(StoreOperation::Claim);
        let connection =
            ArmedConnection::acquire(&self.pool).await.map_err(|error| context.error(error.into()))?;
        let statements = &self.table.statements;
        let begin = begin_claim(statements, request.timeout, self.max_silence);
        let claiming = Claiming {
            table: &self.table.description,
            display_name: &self.display_name,
            statements,
            settling: self.settling,
        };
        let session = Session { connection, statements: Arc::clone(statements) };
        claiming.take(session, &begin, request).await
    }
}

/// Whether a question about a tenant is answered by a row.
pub(super) async fn has_row(
    connection: &mut ArmedConnection,
    question: &Arc<str>,
    tenant: &str,
) -> Result<bool, Failure> {
    let question = Statement::<Mysql, Untyped>::new(question).bind::<Binary>(tenant.as_bytes());
    let rows: Vec<Values> = question.rows(connection.get()?).await?;
    Ok(!rows.is_empty())
}

impl Locking for Session {
    type Error = Failure;

    fn error(error: Failure, operation: StoreOperation, table: &str, settling: Settling) -> StoreError {
        Context { operation, table, settling }.error(error)
    }

    async fn mark(&mut self, published: &[MessageId]) -> Result<u64, Failure> {
        let json = json_ids(published).into_bytes();
        let mark = Statement::<Mysql, Untyped>::new(&self.statements.mark).bind::<Binary>(json);
        let marked = mark.changes(self.connection.get()?).await?;
        Ok(u64::try_from(marked).unwrap_or_default())
    }

    fn release(self) {
        self.connection.give_back();
    }

    async fn run(&mut self, statements: &str) -> Result<(), Failure> {
        Ok(self.connection.get()?.batch_execute(statements).await?)
    }

    async fn has_row(&mut self, question: &Arc<str>, tenant: &str) -> Result<bool, Failure> {
        has_row(&mut self.connection, question, tenant).await
    }

    async fn add(&mut self, add: &Arc<str>, tenant: &str) -> Result<(), Failure> {
        let add = Statement::<Mysql, Untyped>::new(add).bind::<Binary>(tenant.as_bytes());
        add.changes(self.connection.get()?).await?;
        Ok(())
    }

    fn is_conflict(failure: &Failure) -> bool {
        is_conflict(failure)
    }
}

impl Reader for Session {
    type Row = Values;

    async fn read(
        &mut self,
        statement: &Arc<str>,
        excluded: &[&[u8]],
        request: &ClaimRequest,
    ) -> Result<Vec<Values>, Failure> {
        let claim =
            Statement::<Mysql, Untyped>::new(statement).bind::<Binary>(request.tenant_id.as_str().as_bytes());
        let claim = excluded.iter().copied().fold(claim, Statement::bind::<Binary>);
        let claim = claim
            .bind::<BigInt>(i64::from(request.limit.get()))
            .bind::<BigInt>(i64::try_from(request.max_bytes).unwrap_or(i64::MAX));
        Ok(claim.rows(self.connection.get()?).await?)
    }

    fn messages(rows: Vec<Values>, table: &OutboxTable) -> Result<Vec<OutboxMessage>, StoreError> {
        decode_batch(rows.iter().map(Values::message), table, Dialect::MySql, StoreOperation::Claim)
    }
}
