//! The store: an outbox table, seen by one replica.

use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::{
    ClaimOutcome, ClaimRequest, Inspect, OldestPending, OutboxMessage, PendingRequest, ProbeRequest,
    Settling, Store, StoreError, StoreOperation, async_trait,
};
use outbox_sql::dialect::Dialect;
use outbox_sql::named::Named;
use outbox_sql::postgres::encoding::{ENCODING, KnownEncoding};
use outbox_sql::postgres::probe::{Probing, Question};
use outbox_sql::postgres::watermark::Watermarks;
use outbox_sql::postgres::{BEGIN_READ, Durability, KnownTraits};
use outbox_sql::row::decode_all;
use outbox_sql::{InvalidTable, OutboxTable};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row};

use super::ArmedConnection;
use super::PostgresTable;
use super::error::Context;
use super::row;
use outbox_sql::deadline::within;

/// An outbox table of a PostgreSQL database. Cloning is cheap; a clone shares the pool.
///
/// A claim keeps one connection of the pool until it is settled or dropped, and never needs a second. Give the
/// relay a pool of its own, of its concurrency and two more; with fewer it is correct, and slower.
///
/// # Cancellation
/// An operation whose future is dropped, or that overruns its request's timeout, closes its connection: the pool
/// opens another when it needs one. A statement that runs at that moment ends on the server within about a
/// second (PostgreSQL 14 on Linux), else at its own end, and at the latest after the request's timeout if it
/// waits for a lock; then the tenant is free.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pub(super) pool: PgPool,
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
    /// The table that is described, through this pool.
    ///
    /// # Errors
    /// [`InvalidTable`] if PostgreSQL cannot hold such a table.
    pub fn new(pool: PgPool, table: OutboxTable) -> Result<Self, InvalidTable> {
        let display_name = table.display_name(Dialect::Postgres).into();
        let table = PostgresTable::new(table)?;
        let (settling, durability) = (Settling::default(), Durability::default());
        let (traits, encoding, named) = (Arc::default(), KnownEncoding::default(), Arc::default());
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

    /// Prepares no statement under a name, for a pool that connects through a transaction pooler (PgBouncer's
    /// `pool_mode = transaction`), which may bring the next transaction to another server session. Probe and
    /// pending then take three round trips instead of one.
    pub fn without_named_statements(mut self) -> Self {
        self.table = self.table.without_named_statements();
        self
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
        Context { operation, table: &self.display_name, settling: self.settling, named: self.table.named }
    }

    /// The table's description.
    pub fn table(&self) -> &OutboxTable {
        &self.table.description
    }

    /// The pool.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Refuses a database that takes any bytes for text; asks once.
    async fn know_encoding(&self, context: Context<'_>) -> Result<(), StoreError> {
        if self.encoding.is_known() {
            return Ok(());
        }
        let encoding = async {
            let mut connection = ArmedConnection::acquire(&self.pool).await?;
            let encoding: String = sqlx::raw_sql(ENCODING).fetch_one(connection.get()?).await?.try_get(0)?;
            connection.give_back();
            Ok(encoding)
        };
        let encoding = encoding.await.map_err(|error| context.error(error))?;
        self.encoding.learn(&encoding, context.operation)
    }

    /// Runs a statement that only reads.
    ///
    /// Outside of a transaction its snapshot is its own, whatever the server's default isolation. Without named
    /// statements it is in one, so that a pooler keeps preparing and running it on one server session.
    async fn read(&self, query: Query<'_, Postgres, PgArguments>) -> sqlx::Result<Vec<PgRow>> {
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let rows = if self.table.named {
            query.fetch_all(connection.get()?).await?
        } else {
            sqlx::raw_sql(BEGIN_READ).execute(connection.get()?).await?;
            let rows = query.persistent(false).fetch_all(connection.get()?).await?;
            sqlx::raw_sql("COMMIT").execute(connection.get()?).await?;
            rows
        };
        connection.give_back();
        Ok(rows)
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn source(&self) -> &str {
        self.table.description.source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.pool.options().get_max_connections())
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Vec<OldestPending>, StoreError> {
        let operation = StoreOperation::Probe;
        let context = self.context(operation);
        let probing = Probing::new(request, self.watermarks.as_deref())?;
        let Question { statement, tenants, ids } = probing.question(&self.table.statements);
        let mut probe = sqlx::query(AssertSqlSafe(Arc::clone(statement)));
        if let Some(tenants) = tenants {
            probe = probe.bind(tenants);
        }
        if let Some(ids) = ids {
            probe = probe.bind(ids);
        }
        let found = within(request.timeout, operation, async {
            self.know_encoding(context).await?;
            let rows = self.read(probe).await.map_err(|error| context.error(error))?;
            let found: sqlx::Result<Vec<_>> = rows.iter().map(row::oldest).collect();
            found.map_err(|error| context.error(error))
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
        let pending = sqlx::query(AssertSqlSafe(Arc::clone(&self.table.statements.pending)))
            .bind(request.tenant_id.as_str())
            .bind(i64::from(request.limit.get()));
        within(request.timeout, operation, async {
            let rows = self.read(pending).await.map_err(|error| context.error(error))?;
            decode_all(row::messages(&rows), &self.table.description, Dialect::Postgres, operation)
        })
        .await
        .inspect_err(|_| self.forget_watermarks())
    }
}
