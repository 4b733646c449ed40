//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;

use outbox_core::{
    ClaimOutcome, ClaimRequest, MessageId, OutboxMessage, Settling, StoreError, StoreOperation,
};
use outbox_sql::OutboxTable;
use outbox_sql::dialect::Dialect;
use outbox_sql::mysql::claim::{Claiming, Reader};
use outbox_sql::mysql::{Locking, MySqlStatements, begin_claim, json_ids};
use outbox_sql::row::decode_batch;
use sqlx::AssertSqlSafe;
use sqlx::mysql::MySqlRow;

use super::error::{Context, is_conflict};
use super::store::MySqlStore;
use super::{ArmedConnection, row};

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
        let connection = ArmedConnection::acquire(&self.pool).await.map_err(|error| context.error(error))?;
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

impl Locking for Session {
    type Error = sqlx::Error;

    fn error(error: sqlx::Error, operation: StoreOperation, table: &str, settling: Settling) -> StoreError {
        Context { operation, table, settling }.error(error)
    }

    async fn mark(&mut self, published: &[MessageId]) -> sqlx::Result<u64> {
        let mark = sqlx::query(AssertSqlSafe(Arc::clone(&self.statements.mark)));
        let mark = mark.bind(json_ids(published).into_bytes()).execute(self.connection.get()?).await?;
        Ok(mark.rows_affected())
    }

    fn release(self) {
        self.connection.give_back();
    }

    async fn run(&mut self, statements: &str) -> sqlx::Result<()> {
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(self.connection.get()?).await?;
        Ok(())
    }

    async fn has_row(&mut self, question: &Arc<str>, tenant: &str) -> sqlx::Result<bool> {
        let question = sqlx::query(AssertSqlSafe(Arc::clone(question))).bind(tenant.as_bytes());
        Ok(question.fetch_optional(self.connection.get()?).await?.is_some())
    }

    async fn add(&mut self, add: &Arc<str>, tenant: &str) -> sqlx::Result<()> {
        let add = sqlx::query(AssertSqlSafe(Arc::clone(add))).bind(tenant.as_bytes());
        add.execute(self.connection.get()?).await?;
        Ok(())
    }

    fn is_conflict(error: &sqlx::Error) -> bool {
        is_conflict(error)
    }
}

impl Reader for Session {
    type Row = MySqlRow;

    async fn read(
        &mut self,
        statement: &Arc<str>,
        excluded: &[&[u8]],
        request: &ClaimRequest,
    ) -> sqlx::Result<Vec<MySqlRow>> {
        let claim =
            sqlx::query(AssertSqlSafe(Arc::clone(statement))).bind(request.tenant_id.as_str().as_bytes());
        let claim = excluded.iter().fold(claim, |claim, subject| claim.bind(*subject));
        let claim = claim
            .bind(i64::from(request.limit.get()))
            .bind(i64::try_from(request.max_bytes).unwrap_or(i64::MAX));
        claim.fetch_all(self.connection.get()?).await
    }

    fn messages(rows: Vec<MySqlRow>, table: &OutboxTable) -> Result<Vec<OutboxMessage>, StoreError> {
        decode_batch(rows.iter().map(row::message), table, Dialect::MySql, StoreOperation::Claim)
    }
}
