//! The claim: one transaction, from the lock to the mark.

use std::collections::BTreeSet;
use std::sync::Arc;

use outbox_core::{
    ClaimOutcome, ClaimRequest, MessageId, OutboxMessage, Settling, StoreError, StoreOperation,
};
use outbox_sql::OutboxTable;
use outbox_sql::claim::{Holder, Marked};
use outbox_sql::dialect::Dialect;
use outbox_sql::postgres::claim::{Claiming, Reader, TenantLock};
use outbox_sql::postgres::watermark::Suitability;
use outbox_sql::postgres::{
    BEGIN_CLAIM, ClaimNumber, PostgresStatements, SERVER_TRAITS, ServerTraits, claim_settings,
};
use outbox_sql::row::decode_batch;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};

use super::error::Context;
use super::store::PostgresStore;
use super::{ArmedConnection, row, watermark};

/// A session with the transaction of a claim.
#[derive(Debug)]
struct Session {
    connection: ArmedConnection,
    statements: Arc<PostgresStatements>,
    named: bool,
    number: ClaimNumber,
}

impl PostgresStore {
    /// Takes a tenant: begin, lock, and only then read.
    pub(super) async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let context = self.context(StoreOperation::Claim);
        let connection = ArmedConnection::acquire(&self.pool).await.map_err(|error| context.error(error))?;
        let (statements, named) = (Arc::clone(&self.table.statements), self.table.named);
        let mut session = Session { connection, statements, named, number: ClaimNumber::draw() };
        let lock = self.begin_and_lock(&mut session, request).await.map_err(|error| context.error(error))?;
        let claiming = Claiming {
            table: &self.table.description,
            display_name: &self.display_name,
            statements: &self.table.statements,
            settling: self.settling,
            watermarks: self.watermarks.as_ref(),
        };
        claiming.hand_over(session, lock, request).await
    }

    /// Begins the transaction, with its settings, and tries to lock the tenant. One round trip, once the server's
    /// traits are known: each statement of the text is one by itself, and the lock is the last of them.
    async fn begin_and_lock(
        &self,
        session: &mut Session,
        request: &ClaimRequest,
    ) -> sqlx::Result<TenantLock> {
        let lock =
            format!("{}; {}", session.number.announce(), session.statements.lock_of(&request.tenant_id));
        let settings = |traits| claim_settings(traits, request.timeout, self.durability);
        let connection = session.connection.get()?;
        let answer = if let Some(traits) = self.traits.get() {
            let all = format!("{BEGIN_CLAIM}; {}; {lock}", settings(traits));
            let answer = sqlx::raw_sql(AssertSqlSafe(all)).fetch_all(connection).await;
            if answer.is_err() {
                // Perhaps another server than the one that was asked.
                self.traits.forget();
            }
            answer?
        } else {
            sqlx::raw_sql(BEGIN_CLAIM).execute(&mut *connection).await?;
            let asked = sqlx::query_as(SERVER_TRAITS).persistent(false);
            let (version, linux) = asked.fetch_one(&mut *connection).await?;
            let traits = ServerTraits { version, linux };
            let rest = AssertSqlSafe(format!("{}; {lock}", settings(traits)));
            let answer = sqlx::raw_sql(rest).fetch_all(connection).await?;
            self.traits.remember(traits);
            answer
        };
        let answer = answer.last().ok_or(sqlx::Error::RowNotFound)?;
        Ok(TenantLock { is_taken: answer.try_get(0)?, may_settle: answer.try_get(1)? })
    }
}

impl Holder for Session {
    type Error = sqlx::Error;

    fn error(error: sqlx::Error, operation: StoreOperation, table: &str, settling: Settling) -> StoreError {
        Context { operation, table, settling, named: true }.error(error)
    }

    async fn verify(&mut self) -> sqlx::Result<()> {
        sqlx::raw_sql("SELECT 1").execute(self.connection.get()?).await?;
        Ok(())
    }

    async fn mark(mut self, published: Vec<MessageId>) -> sqlx::Result<Marked> {
        let ids: Vec<i64> = published.into_iter().map(MessageId::get).collect();
        let mark = sqlx::query(AssertSqlSafe(Arc::clone(&self.statements.mark)));
        let mark = mark.persistent(self.named).bind(ids).execute(self.connection.get()?).await?;
        let commit = AssertSqlSafe(self.number.commit_and_confirm());
        let rows = sqlx::raw_sql(commit).fetch_all(self.connection.get()?).await?;
        let committed = rows.last().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
        self.connection.give_back();
        Ok(Marked { rows: mark.rows_affected(), committed })
    }

    async fn roll_back(mut self) -> sqlx::Result<()> {
        sqlx::raw_sql("ROLLBACK").execute(self.connection.get()?).await?;
        self.connection.give_back();
        Ok(())
    }
}

impl Reader for Session {
    type Row = PgRow;

    async fn read(
        &mut self,
        statement: &Arc<str>,
        request: &ClaimRequest,
        from: Option<i64>,
    ) -> sqlx::Result<Vec<PgRow>> {
        let mut query = sqlx::query(AssertSqlSafe(Arc::clone(statement)))
            .persistent(self.named)
            .bind(request.tenant_id.as_str())
            .bind(i64::from(request.limit.get()))
            .bind(i64::try_from(request.max_bytes).unwrap_or(i64::MAX));
        if !request.excluded_subjects.is_empty() {
            query = query.bind(&*request.excluded_subjects);
        }
        if let Some(from) = from {
            query = query.bind(from);
        }
        query.fetch_all(self.connection.get()?).await
    }

    fn id(row: &PgRow) -> Option<i64> {
        row.try_get(0).ok()
    }

    fn messages(rows: Vec<PgRow>, table: &OutboxTable) -> Result<Vec<OutboxMessage>, StoreError> {
        decode_batch(row::messages(&rows), table, Dialect::Postgres, StoreOperation::Claim)
    }

    async fn facts(&mut self) -> sqlx::Result<Suitability> {
        watermark::facts(self.connection.get()?, &self.statements).await
    }

    async fn writers(&mut self) -> sqlx::Result<BTreeSet<String>> {
        let writers = AssertSqlSafe(Arc::clone(&self.statements.watermark.writers));
        let writers = sqlx::raw_sql(writers).fetch_all(self.connection.get()?).await?;
        writers.iter().map(|row| row.try_get(0)).collect()
    }
}
