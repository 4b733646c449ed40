//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, Settlement, Settling, StoreError, StoreOperation, async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::dialect::mysql::{
    COMMIT, MySqlStatements, ROLLBACK, SENTINEL, VERIFY, begin_claim, json_ids,
};
use outbox_sql::row::decode_batch;
use outbox_sql::settlement::{HandedOut, check_marked};
use sqlx::mysql::MySqlRow;
use sqlx::{AssertSqlSafe, MySqlConnection};

use super::error::{Context, is_conflict};
use super::store::MySqlStore;
use super::{ArmedConnection, row};

/// The subjects, the last one repeated: a few lengths, so that few statements are prepared.
fn padded(subjects: &[String]) -> Vec<&String> {
    let last = subjects.last();
    subjects
        .iter()
        .chain(last.into_iter().cycle())
        .take(match subjects.len() {
            0 => 0,
            some => some.next_power_of_two(),
        })
        .collect()
}

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

/// Whose a row of the claims is.
enum Row {
    Ours,
    Anothers,
    Missing,
}

impl MySqlStore {
    /// Takes a tenant: begin, lock, and only then read.
    pub(super) async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let operation = StoreOperation::Claim;
        let context = self.context(operation);
        let failed = |error| context.error(error);
        let Some(mut connection) = self.lock(request).await? else { return Ok(ClaimOutcome::Held) };

        // A statement of its own: its snapshot is taken after the lock, and sees what the last holder marked.
        let excluded = padded(&request.excluded_subjects);
        let statement: Arc<str> = if excluded.is_empty() {
            Arc::clone(&self.table.statements.claim)
        } else {
            self.table.statements.claim_others(excluded.len()).into()
        };
        let mut query = sqlx::query(AssertSqlSafe(statement)).bind(request.tenant_id.as_str().as_bytes());
        for subject in excluded {
            query = query.bind(subject.as_bytes());
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
        let tenant = request.tenant_id.as_str();
        let begin = begin_claim(&self.table.statements, request.timeout, self.max_silence);
        let mut connection = ArmedConnection::acquire(&self.pool).await.map_err(failed)?;
        let session = connection.get().map_err(failed)?;
        run(session, &begin).await.map_err(failed)?;
        match self.try_row(session, tenant).await.map_err(failed)? {
            Row::Ours => return Ok(Some(connection)),
            Row::Anothers => return end(connection, ROLLBACK).await.map_err(failed).map(|()| None),
            Row::Missing => {}
        }

        // Whoever adds a row has the sentinel locked, so that nobody waits for another's insert.
        match self.try_row(session, SENTINEL).await.map_err(failed)? {
            Row::Ours => {}
            Row::Anothers => return end(connection, ROLLBACK).await.map_err(failed).map(|()| None),
            Row::Missing => return Err(no_sentinel(&self.display_name)),
        }
        // Another may have added it before the sentinel was locked.
        if !has_row(session, &self.table.statements.exists, tenant).await.map_err(failed)? {
            let add = sqlx::query(AssertSqlSafe(Arc::clone(&self.table.statements.add)));
            match add.bind(tenant.as_bytes()).execute(&mut *session).await {
                Ok(_) => {}
                Err(error) if is_conflict(&error) => return Ok(None),
                Err(error) => return Err(failed(error)),
            }
        }
        run(session, COMMIT).await.map_err(failed)?;
        run(session, &begin).await.map_err(failed)?;
        match self.try_row(session, tenant).await.map_err(failed)? {
            Row::Ours => Ok(Some(connection)),
            Row::Anothers | Row::Missing => end(connection, ROLLBACK).await.map_err(failed).map(|()| None),
        }
    }

    /// Locks a row of the claims, if it is there and nobody has. Neither question waits.
    async fn try_row(&self, session: &mut MySqlConnection, tenant: &str) -> sqlx::Result<Row> {
        if has_row(session, &self.table.statements.lock, tenant).await? {
            return Ok(Row::Ours);
        }
        let exists = has_row(session, &self.table.statements.exists, tenant).await?;
        Ok(if exists { Row::Anothers } else { Row::Missing })
    }
}

async fn has_row(session: &mut MySqlConnection, question: &Arc<str>, tenant: &str) -> sqlx::Result<bool> {
    let question = sqlx::query(AssertSqlSafe(Arc::clone(question))).bind(tenant.as_bytes());
    Ok(question.fetch_optional(session).await?.is_some())
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

fn no_sentinel(table: &str) -> StoreError {
    StoreError::permanent(
        StoreOperation::Claim,
        format!(
            "the table of claims of {table} lacks its empty row, which whoever adds a row locks: insert it, as the \
             DDL does; check() has the statement"
        ),
    )
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
