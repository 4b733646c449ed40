//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, MessageId, Settlement, Settling, StoreError, StoreOperation,
    async_trait,
};
use outbox_sql::dialect::Dialect;
use outbox_sql::dialect::postgres::error::relay_rights;
use outbox_sql::dialect::postgres::watermark::Remembering;
use outbox_sql::dialect::postgres::{
    BEGIN_CLAIM, ClaimNumber, PostgresStatements, SERVER_TRAITS, ServerTraits, claim_settings,
};
use outbox_sql::row::decode_batch;
use outbox_sql::settlement::{HandedOut, check_committed, check_marked};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};

use super::ArmedConnection;
use super::error::Context;
use super::row;
use super::store::PostgresStore;
use outbox_sql::deadline::within;

/// A tenant held by a transaction. Its drop closes the connection, and the server rolls back.
#[derive(Debug)]
pub(super) struct PostgresClaim {
    /// `None` once the connection was lost.
    connection: Option<ArmedConnection>,
    statements: Arc<PostgresStatements>,
    table: Arc<str>,
    settling: Settling,
    named: bool,
    timeout: Duration,
    number: ClaimNumber,
    handed_out: HandedOut,
    /// `None` if the store has no watermarks.
    remembering: Option<Remembering>,
}

impl PostgresStore {
    /// Takes a tenant: begin, lock, and only then read.
    pub(super) async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let operation = StoreOperation::Claim;
        let context = self.context(operation);
        let failed = |error| context.error(error);
        let mut connection = ArmedConnection::acquire(&self.pool).await.map_err(failed)?;
        let number = ClaimNumber::draw();
        let lock = self.begin_and_lock(&mut connection, request, number).await.map_err(failed)?;
        let (locked, may_settle): (bool, Option<bool>) =
            lock.try_get(0).and_then(|locked| Ok((locked, lock.try_get(1)?))).map_err(failed)?;
        if !locked {
            roll_back(connection).await.map_err(failed)?;
            return Ok(ClaimOutcome::Held);
        }
        if may_settle != Some(true) {
            let (table, rights) = (&self.display_name, relay_rights(self.settling));
            let refused = format!("{table} could be read, and nothing settled: grant {rights} on {table}");
            return Err(StoreError::permanent(operation, refused));
        }

        let (rows, remembering) = self.read_batch(&mut connection, request).await?;
        let messages =
            decode_batch(row::messages(&rows), &self.table.description, Dialect::Postgres, operation)?;
        let claim = PostgresClaim {
            connection: Some(connection),
            statements: Arc::clone(&self.table.statements),
            table: Arc::clone(&self.display_name),
            settling: self.settling,
            named: self.table.named,
            timeout: request.timeout,
            number,
            handed_out: HandedOut::of(&messages),
            remembering,
        };
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim))))
    }

    /// Begins the transaction, with its settings, and tries to lock the tenant. One round trip, once the server's
    /// traits are known: each statement of the text is one by itself, and the lock is the last of them.
    async fn begin_and_lock(
        &self,
        connection: &mut ArmedConnection,
        request: &ClaimRequest,
        number: ClaimNumber,
    ) -> sqlx::Result<PgRow> {
        let lock = format!("{}; {}", number.announce(), self.table.statements.lock_of(&request.tenant_id));
        let settings = |traits| claim_settings(traits, request.timeout, self.durability);
        let answer = if let Some(traits) = self.traits.get() {
            let all = format!("{BEGIN_CLAIM}; {}; {lock}", settings(traits));
            let answer = sqlx::raw_sql(AssertSqlSafe(all)).fetch_all(connection.get()?).await;
            if answer.is_err() {
                // Perhaps another server than the one that was asked.
                self.traits.forget();
            }
            answer?
        } else {
            sqlx::raw_sql(BEGIN_CLAIM).execute(connection.get()?).await?;
            let asked = sqlx::query_as(SERVER_TRAITS).persistent(false);
            let (version, linux) = asked.fetch_one(connection.get()?).await?;
            let traits = ServerTraits { version, linux };
            let rest = AssertSqlSafe(format!("{}; {lock}", settings(traits)));
            let answer = sqlx::raw_sql(rest).fetch_all(connection.get()?).await?;
            self.traits.remember(traits);
            answer
        };
        answer.into_iter().next().ok_or(sqlx::Error::RowNotFound)
    }
}

async fn roll_back(mut connection: ArmedConnection) -> sqlx::Result<()> {
    sqlx::raw_sql("ROLLBACK").execute(connection.get()?).await?;
    connection.give_back();
    Ok(())
}

impl PostgresClaim {
    fn context(&self, operation: StoreOperation) -> Context<'_> {
        Context { operation, table: &self.table, settling: self.settling }
    }

    fn lost(operation: StoreOperation) -> StoreError {
        StoreError::transient(operation, "the session that held the tenant was lost")
    }

    async fn end(mut self: Box<Self>, published: Vec<MessageId>) -> Result<(), StoreError> {
        let operation = StoreOperation::Settle;
        let connection = self.connection.take().ok_or_else(|| Self::lost(operation))?;
        let timeout = self.timeout;
        within(timeout, operation, async move {
            if published.is_empty() {
                let context = self.context(operation);
                return roll_back(connection).await.map_err(|error| context.error(error));
            }
            self.mark(connection, published.into_iter().map(MessageId::get).collect()).await
        })
        .await
    }

    fn forget_watermarks(&self) {
        if let Some(remembering) = &self.remembering {
            remembering.forget();
        }
    }

    async fn mark(self, mut connection: ArmedConnection, published: Vec<i64>) -> Result<(), StoreError> {
        let operation = StoreOperation::Settle;
        let context = self.context(operation);
        let failed = |error| context.error(error);
        let given = published.len();
        let marked = sqlx::query(AssertSqlSafe(Arc::clone(&self.statements.mark)))
            .persistent(self.named)
            .bind(published)
            .execute(connection.get().map_err(failed)?)
            .await
            .map_err(failed)?
            .rows_affected();
        check_committed(commit(connection, self.number).await.map_err(failed)?)?;
        check_marked(given, marked, &self.table)
    }
}

/// Commits, and answers whether that was done.
async fn commit(mut connection: ArmedConnection, number: ClaimNumber) -> sqlx::Result<bool> {
    let text = AssertSqlSafe(number.commit_and_confirm());
    let rows: Vec<PgRow> = sqlx::raw_sql(text).fetch_all(connection.get()?).await?;
    let committed = rows.last().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
    connection.give_back();
    Ok(committed)
}

#[async_trait]
impl Claim for PostgresClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let operation = StoreOperation::Verify;
        // Out of the claim meanwhile: what does not come to its end closes the connection.
        let mut connection = self.connection.take().ok_or_else(|| Self::lost(operation))?;
        let context = self.context(operation);
        let connection = within(self.timeout, operation, async {
            let session = connection.get().map_err(|error| context.error(error))?;
            sqlx::raw_sql("SELECT 1").execute(session).await.map_err(|error| context.error(error))?;
            Ok(connection)
        })
        .await
        .inspect_err(|_| self.forget_watermarks())?;
        self.connection = Some(connection);
        Ok(())
    }

    async fn settle(mut self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let published = self.handed_out.to_mark(settlement)?;
        let remembering = self.remembering.take();
        let remembering = remembering.map(|remembering| remembering.settling(&self.handed_out, &published));
        let settled = self.end(published).await;
        if let Some(remembering) = remembering {
            remembering.settled(&settled);
        }
        settled
    }
}
