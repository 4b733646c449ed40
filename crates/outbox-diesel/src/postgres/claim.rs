//! The claim: one transaction, from the lock to the mark.

use std::sync::Arc;
use std::time::Duration;

use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Bool, Integer, Nullable, Text, Untyped};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures_util::future::join;
use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, MessageId, Settlement, Settling, StoreError, StoreOperation,
    async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::dialect::postgres::error::relay_rights;
use outbox_sql::dialect::postgres::watermark::Remembering;
use outbox_sql::dialect::postgres::{
    BEGIN_CLAIM, CONFIRM, PostgresStatements, SERVER_TRAITS, ServerTraits, TRANSACTION, claim_settings,
};
use outbox_sql::row::decode_batch;
use outbox_sql::settlement::{HandedOut, check_committed, check_marked};

use super::error::Context;
use super::store::PostgresStore;
use crate::connection::{ArmedConnection, Failure};
use crate::statement::Statement;

type Armed = ArmedConnection<AsyncPgConnection>;

/// A tenant held by a transaction. Its drop closes the connection, and the server rolls back.
#[derive(Debug)]
pub(super) struct PostgresClaim {
    /// `None` once the connection was lost.
    connection: Option<Armed>,
    statements: Arc<PostgresStatements>,
    table: Arc<str>,
    timeout: Duration,
    settling: Settling,
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
        let mut connection = Armed::acquire(&self.pool).await.map_err(|error| failed(error.into()))?;
        self.begin(&mut connection, request.timeout).await.map_err(failed)?;

        let (locked, may_settle) = self.lock(&mut connection, request).await.map_err(failed)?;
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
        let raw = rows.into_iter().map(|row| row.0);
        let messages = decode_batch(raw, &self.table.description, Dialect::Postgres, operation)?;
        let claim = PostgresClaim {
            connection: Some(connection),
            statements: Arc::clone(&self.table.statements),
            table: Arc::clone(&self.display_name),
            timeout: request.timeout,
            settling: self.settling,
            handed_out: HandedOut::of(&messages),
            remembering,
        };
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim))))
    }

    /// Begins the transaction, with its settings. One round trip, once the server's traits are known.
    async fn begin(&self, connection: &mut Armed, timeout: Duration) -> Result<(), Failure> {
        if let Some(traits) = self.traits.get() {
            let begin = format!("{BEGIN_CLAIM}; {}", claim_settings(traits, timeout, self.durability));
            let answer = connection.get()?.batch_execute(&begin).await;
            if answer.is_err() {
                // Perhaps another server than the one that was asked.
                self.traits.forget();
            }
            answer?;
        } else {
            connection.get()?.batch_execute(BEGIN_CLAIM).await?;
            let asked = Statement::<Pg, (Integer, Bool)>::new(SERVER_TRAITS);
            let (version, linux) = asked.one_row(connection.get()?).await?;
            let traits = ServerTraits { version, linux };
            connection.get()?.batch_execute(&claim_settings(traits, timeout, self.durability)).await?;
            self.traits.remember(traits);
        }
        Ok(())
    }

    async fn lock(
        &self,
        connection: &mut Armed,
        request: &ClaimRequest,
    ) -> Result<(bool, Option<bool>), Failure> {
        let lock = Statement::<Pg, (Bool, Nullable<Bool>)>::new(&self.table.statements.lock)
            .bind::<Text>(request.tenant_id.as_str());
        Ok(lock.one_row(connection.get()?).await?)
    }
}

async fn roll_back(mut connection: Armed) -> Result<(), Failure> {
    connection.get()?.batch_execute("ROLLBACK").await?;
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

    async fn mark(self, mut connection: Armed, published: Vec<i64>) -> Result<(), StoreError> {
        let operation = StoreOperation::Settle;
        let context = self.context(operation);
        let failed = |error| context.error(error);
        let given = published.len();
        let (marked, transaction) =
            mark(&self.statements, &mut connection, published).await.map_err(failed)?;
        let fate = commit(connection, transaction).await.map_err(failed)?;
        check_committed(fate.as_deref() == Some("committed"))?;
        check_marked(given, u64::try_from(marked).unwrap_or_default(), &self.table)
    }
}

/// Marks or deletes, and answers how many rows, and the transaction's number. Both are sent at once, in this order.
async fn mark(
    statements: &PostgresStatements,
    connection: &mut Armed,
    published: Vec<i64>,
) -> Result<(usize, String), Failure> {
    let session: &AsyncPgConnection = connection.get()?;
    let (mut marking, mut asking) = (session, session);
    let mark = Statement::<Pg, Untyped>::new(&statements.mark).bind::<Array<BigInt>>(published);
    let number = Statement::<Pg, Text>::new(TRANSACTION);
    let (marked, number) = join(mark.changes(&mut marking), number.one_row(&mut asking)).await;
    Ok((marked?, number?))
}

/// Commits, and answers what became of the transaction: a `COMMIT` can be answered by a rollback. Both are sent at
/// once, in this order.
async fn commit(mut connection: Armed, transaction: String) -> Result<Option<String>, Failure> {
    let session: &AsyncPgConnection = connection.get()?;
    let (mut committing, mut confirming) = (session, session);
    let confirm = Statement::<Pg, Nullable<Text>>::new(CONFIRM).bind::<Text>(transaction);
    let (committed, fate) = join(committing.batch_execute("COMMIT"), confirm.one_row(&mut confirming)).await;
    committed?;
    let fate = fate?;
    connection.give_back();
    Ok(fate)
}

#[async_trait]
impl Claim for PostgresClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let operation = StoreOperation::Verify;
        // Out of the claim meanwhile: what does not come to its end closes the connection.
        let mut connection = self.connection.take().ok_or_else(|| Self::lost(operation))?;
        let context = self.context(operation);
        let connection = within(self.timeout, operation, async {
            let session = connection.get().map_err(|error| context.error(error.into()))?;
            session.batch_execute("SELECT 1").await.map_err(|error| context.error(error.into()))?;
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
