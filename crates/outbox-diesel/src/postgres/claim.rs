//! The claim: one transaction, from the lock to the mark.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Bool, Integer, Nullable, Text, Untyped};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures_util::future::join;
use outbox_core::{
    ClaimOutcome, ClaimRequest, MessageId, OutboxMessage, Settling, StoreError, StoreOperation,
};
use outbox_sql::OutboxTable;
use outbox_sql::claim::{Holder, Marked};
use outbox_sql::dialect::Dialect;
use outbox_sql::postgres::claim::{Claiming, Reader, TenantLock};
use outbox_sql::postgres::watermark::Suitability;
use outbox_sql::postgres::{
    BEGIN_CLAIM, CONFIRM, PostgresStatements, SERVER_TRAITS, ServerTraits, TRANSACTION, claim_settings,
};
use outbox_sql::row::decode_batch;

use super::error::Context;
use super::row::{MessageColumns, MessageRow};
use super::store::PostgresStore;
use super::watermark;
use crate::connection::{ArmedConnection, Failure};
use crate::statement::Statement;

/// A session with the transaction of a claim.
#[derive(Debug)]
struct Session {
    connection: ArmedConnection<AsyncPgConnection>,
    statements: Arc<PostgresStatements>,
}

impl PostgresStore {
    /// Takes a tenant: begin, lock, and only then read.
    pub(super) async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let context = self.context(StoreOperation::Claim);
        let (session, lock) = self.begin_and_lock(request).await.map_err(|error| context.error(error))?;
        let claiming = Claiming {
            table: &self.table.description,
            display_name: &self.display_name,
            statements: &self.table.statements,
            settling: self.settling,
            watermarks: self.watermarks.as_ref(),
        };
        claiming.hand_over(session, lock, request).await
    }

    async fn begin_and_lock(&self, request: &ClaimRequest) -> Result<(Session, TenantLock), Failure> {
        let connection = ArmedConnection::acquire(&self.pool).await?;
        let mut session = Session { connection, statements: Arc::clone(&self.table.statements) };
        let connection = session.connection.get()?;
        self.begin(connection, request.timeout).await?;
        let lock = Statement::<Pg, (Bool, Nullable<Bool>)>::new(&session.statements.lock)
            .bind::<Text>(request.tenant_id.as_str());
        let (is_taken, may_settle) = lock.one_row(connection).await?;
        Ok((session, TenantLock { is_taken, may_settle }))
    }

    /// Begins the transaction, with its settings. One round trip, once the server's traits are known.
    async fn begin(&self, connection: &mut AsyncPgConnection, timeout: Duration) -> Result<(), Failure> {
        if let Some(traits) = self.traits.get() {
            let begin = format!("{BEGIN_CLAIM}; {}", claim_settings(traits, timeout, self.durability));
            let answer = connection.batch_execute(&begin).await;
            if answer.is_err() {
                // Perhaps another server than the one that was asked.
                self.traits.forget();
            }
            answer?;
        } else {
            connection.batch_execute(BEGIN_CLAIM).await?;
            let asked = Statement::<Pg, (Integer, Bool)>::new(SERVER_TRAITS);
            let (version, linux) = asked.one_row(connection).await?;
            let traits = ServerTraits { version, linux };
            connection.batch_execute(&claim_settings(traits, timeout, self.durability)).await?;
            self.traits.remember(traits);
        }
        Ok(())
    }
}

impl Session {
    /// Marks or deletes, and answers how many rows, and the transaction's number. Both are sent at once, in this
    /// order.
    async fn mark_and_ask(&mut self, published: Vec<i64>) -> Result<(usize, String), Failure> {
        let session: &AsyncPgConnection = self.connection.get()?;
        let (mut marking, mut asking) = (session, session);
        let mark = Statement::<Pg, Untyped>::new(&self.statements.mark).bind::<Array<BigInt>>(published);
        let number = Statement::<Pg, Text>::new(TRANSACTION);
        let (marked, number) = join(mark.changes(&mut marking), number.one_row(&mut asking)).await;
        Ok((marked?, number?))
    }

    /// Commits, and answers what became of the transaction: a `COMMIT` can be answered by a rollback. Both are sent
    /// at once, in this order.
    async fn commit(&mut self, transaction: String) -> Result<Option<String>, Failure> {
        let session: &AsyncPgConnection = self.connection.get()?;
        let (mut committing, mut confirming) = (session, session);
        let confirm = Statement::<Pg, Nullable<Text>>::new(CONFIRM).bind::<Text>(transaction);
        let (committed, fate) =
            join(committing.batch_execute("COMMIT"), confirm.one_row(&mut confirming)).await;
        committed?;
        Ok(fate?)
    }
}

impl Holder for Session {
    type Error = Failure;

    fn error(error: Failure, operation: StoreOperation, table: &str, settling: Settling) -> StoreError {
        Context { operation, table, settling }.error(error)
    }

    async fn verify(&mut self) -> Result<(), Failure> {
        Ok(self.connection.get()?.batch_execute("SELECT 1").await?)
    }

    async fn mark(mut self, published: Vec<MessageId>) -> Result<Marked, Failure> {
        let ids = published.into_iter().map(MessageId::get).collect();
        let (marked, transaction) = self.mark_and_ask(ids).await?;
        let fate = self.commit(transaction).await?;
        self.connection.give_back();
        let rows = u64::try_from(marked).unwrap_or_default();
        Ok(Marked { rows, committed: fate.as_deref() == Some("committed") })
    }

    async fn roll_back(mut self) -> Result<(), Failure> {
        self.connection.get()?.batch_execute("ROLLBACK").await?;
        self.connection.give_back();
        Ok(())
    }
}

impl Reader for Session {
    type Row = MessageRow;

    async fn read(
        &mut self,
        statement: &Arc<str>,
        request: &ClaimRequest,
        from: Option<i64>,
    ) -> Result<Vec<MessageRow>, Failure> {
        let mut read = Statement::<Pg, MessageColumns>::new(statement)
            .bind::<Text>(request.tenant_id.as_str())
            .bind::<BigInt>(i64::from(request.limit.get()))
            .bind::<BigInt>(i64::try_from(request.max_bytes).unwrap_or(i64::MAX));
        if !request.excluded_subjects.is_empty() {
            read = read.bind::<Array<Text>>(&*request.excluded_subjects);
        }
        if let Some(from) = from {
            read = read.bind::<BigInt>(from);
        }
        Ok(read.rows(self.connection.get()?).await?)
    }

    fn id(row: &MessageRow) -> Option<i64> {
        row.0.id.as_ref().ok().copied()
    }

    fn messages(rows: Vec<MessageRow>, table: &OutboxTable) -> Result<Vec<OutboxMessage>, StoreError> {
        let raw = rows.into_iter().map(|row| row.0);
        decode_batch(raw, table, Dialect::Postgres, StoreOperation::Claim)
    }

    async fn facts(&mut self) -> Result<Suitability, Failure> {
        watermark::facts(self.connection.get()?, &self.statements).await
    }

    async fn writers(&mut self) -> Result<BTreeSet<String>, Failure> {
        let writers = Statement::<Pg, Text>::new(&self.statements.watermark.writers);
        let writers: Vec<String> = writers.rows(self.connection.get()?).await?;
        Ok(writers.into_iter().collect())
    }
}
