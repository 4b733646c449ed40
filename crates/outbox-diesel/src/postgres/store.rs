//! The store: an outbox table, seen by one replica.

use std::num::NonZeroU32;
use std::sync::Arc;

use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Text};
use diesel_async::AsyncPgConnection;
use outbox_core::{
    ClaimOutcome, ClaimRequest, Inspect, OldestPending, OutboxMessage, PendingRequest, ProbeRequest,
    Settling, Store, StoreError, StoreOperation, TenantId, async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::named::Named;
use outbox_sql::postgres::encoding::{ENCODING, KnownEncoding};
use outbox_sql::postgres::probe::{Probing, Question};
use outbox_sql::postgres::watermark::Watermarks;
use outbox_sql::postgres::{Durability, KnownTraits};
use outbox_sql::row::decode_all;
use outbox_sql::{InvalidTable, OutboxTable};

use super::PostgresTable;
use super::error::Context;
use super::row::{MessageColumns, MessageRow, OldestColumns, OldestRow};
use crate::connection::{ArmedConnection, Failure};
use crate::pool::Pool;
use crate::statement::Statement;

/// An outbox table of a PostgreSQL database. Cloning is cheap; a clone shares the pool.
///
/// A claim keeps one connection of the pool until it is settled or dropped, and never needs a second. Give the
/// relay a pool of its own, of its concurrency and two more; with fewer it is correct, and slower.
///
/// `diesel-async` gives every statement a name. Behind a transaction pooler that works where the pooler keeps track of
/// these names (PgBouncer from 1.21 on, with `max_prepared_statements` above 0); else connect directly.
///
/// # Cancellation
/// An operation whose future is dropped, or that overruns its request's timeout, closes its connection: the pool
/// opens another when it needs one. A statement that runs at that moment ends on the server within about a
/// second (PostgreSQL 14 on Linux), else at its own end, and at the latest after the request's timeout if it
/// waits for a lock; then the tenant is free.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pub(super) pool: Pool<AsyncPgConnection>,
    pub(super) table: PostgresTable,
    pub(super) display_name: Arc<str>,
    pub(super) traits: Arc<KnownTraits>,
    encoding: KnownEncoding,
    named: Arc<Named>,
    pub(super) settling: Settling,
    pub(super) durability: Durability,
    pub(super) watermarks: Option<Arc<Watermarks>>,
}

impl PostgresStore {
    /// The table that is described, through this pool: one of bb8, of deadpool, or a [`Pool`] by way of an adapter.
    ///
    /// # Errors
    /// [`InvalidTable`] if PostgreSQL cannot hold such a table.
    pub fn new(pool: impl Into<Pool<AsyncPgConnection>>, table: OutboxTable) -> Result<Self, InvalidTable> {
        let display_name = table.display_name(Dialect::Postgres).into();
        let table = PostgresTable::new(table)?;
        let (settling, durability) = (Settling::default(), Durability::default());
        let (pool, traits, named) = (pool.into(), Arc::default(), Arc::default());
        let encoding = KnownEncoding::default();
        Ok(Self {
            pool,
            table,
            display_name,
            traits,
            encoding,
            named,
            settling,
            durability,
            watermarks: None,
        })
    }

    /// Sets what becomes of a published row. Deleting it needs the right to, which a claim looks for as it does
    /// for that of marking.
    pub fn with_settling(mut self, settling: Settling) -> Self {
        let statements = (*self.table.statements).clone();
        self.table.statements = statements.with_settling(&self.table.description, settling).into();
        self.settling = settling;
        self
    }

    /// Sets whether the commit of a mark waits for the disk.
    ///
    /// It is set for the claim's own transaction, and for nothing else on its connection. PostgreSQL only: of the
    /// databases here no other can say so for one transaction.
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    pub(super) fn context(&self, operation: StoreOperation) -> Context<'_> {
        Context { operation, table: &self.display_name, settling: self.settling }
    }

    /// The table's description.
    pub fn table(&self) -> &OutboxTable {
        &self.table.description
    }

    /// The pool.
    pub fn pool(&self) -> &Pool<AsyncPgConnection> {
        &self.pool
    }

    async fn look_at(&self, tenant: &TenantId, limit: NonZeroU32) -> Result<Vec<MessageRow>, Failure> {
        let pending = Statement::<Pg, MessageColumns>::new(&self.table.statements.pending)
            .bind::<Text>(tenant.as_str())
            .bind::<BigInt>(i64::from(limit.get()));
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let rows = pending.rows(connection.get()?).await?;
        connection.give_back();
        Ok(rows)
    }

    /// Refuses a database that takes any bytes for text; asks once.
    async fn know_encoding(&self, context: Context<'_>) -> Result<(), StoreError> {
        if self.encoding.is_known() {
            return Ok(());
        }
        let encoding = async {
            let mut connection = ArmedConnection::acquire(&self.pool).await?;
            let encoding: String = Statement::<Pg, Text>::new(ENCODING).one_row(connection.get()?).await?;
            connection.give_back();
            Ok(encoding)
        };
        let encoding = encoding.await.map_err(|error| context.error(error))?;
        self.encoding.learn(&encoding, context.operation)
    }

    async fn find_oldest(&self, question: Question<'_>) -> Result<Vec<OldestPending>, Failure> {
        let mut probe = Statement::<Pg, OldestColumns>::new(question.statement);
        if let Some(tenants) = question.tenants {
            probe = probe.bind::<Array<Text>>(tenants);
        }
        if let Some(ids) = question.ids {
            probe = probe.bind::<Array<BigInt>>(ids);
        }
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let rows: Vec<OldestRow> = probe.rows(connection.get()?).await?;
        connection.give_back();
        Ok(rows.into_iter().map(|row| row.0).collect())
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn source(&self) -> &str {
        self.table.description.source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        self.pool.adapter().max_size()
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Vec<OldestPending>, StoreError> {
        let operation = StoreOperation::Probe;
        let context = self.context(operation);
        let probing = Probing::new(request, self.watermarks.as_deref())?;
        let question = probing.question(&self.table.statements);
        let found = within(request.timeout, operation, async {
            self.know_encoding(context).await?;
            self.find_oldest(question).await.map_err(|error| context.error(error))
        });
        let found = found.await.inspect_err(|_| self.forget_watermarks())?;
        Ok(probing.answer(found, &self.named))
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        within(request.timeout, StoreOperation::Claim, self.take(request))
            .await
            .inspect_err(|_| self.forget_watermarks())
    }
}

#[async_trait]
impl Inspect for PostgresStore {
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        let operation = StoreOperation::Pending;
        let context = self.context(operation);
        within(request.timeout, operation, async {
            let rows = self
                .look_at(&request.tenant_id, request.limit)
                .await
                .map_err(|error| context.error(error))?;
            let raw = rows.into_iter().map(|row| row.0);
            decode_all(raw, &self.table.description, Dialect::Postgres, operation)
        })
        .await
        .inspect_err(|_| self.forget_watermarks())
    }
}
