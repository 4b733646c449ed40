//! The store: looking, and what a claim begins with.

use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::{
    ClaimOutcome, ClaimRequest, Inspect, OldestPending, OutboxMessage, PendingRequest, ProbeRequest, Probed,
    Settling, Store, StoreError, StoreOperation, TenantId, Tenants, async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::row::decode_all;
use outbox_sql::sqlite::{Place, Writable, meaning};
use outbox_sql::sqlite::{SqliteStatements, json_tenants};
use outbox_sql::table::{InvalidTable, OutboxTable};
use sqlx::sqlite::SqlitePool;
use sqlx::{AssertSqlSafe, SqliteConnection};
use tokio::sync::OnceCell;

use super::connection::Lent;
use super::error::store_error;
use super::{place, row};

/// An outbox table of a SQLite database. Clones share the pool; each stands for the same replica.
///
/// A claim is a lock file of the operating system beside the database, one for each tenant: no transaction is
/// open and no connection is held while the relay publishes, so the application writes on, and a killed
/// process frees its tenants at once. Leave the files called `…-outbox-….lock` where they are: deleting one
/// that is held lets a second holder in (the first one notices when it verifies).
///
/// The database's directory has to be writable, on a local disk. Use WAL (`journal_mode`) and a busy timeout;
/// neither is changed here, and [`check`](Self::check) says what is missing. In memory, use a shared database
/// (`sqlite::memory:`), or a pool of exactly one connection that is never closed.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(super) shared: Arc<Shared>,
}

/// What the store, its clones and its claims share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pool: SqlitePool,
    pub(super) table: OutboxTable,
    pub(super) statements: SqliteStatements,
    place: OnceCell<Place>,
    /// Whether the database is known to take writes: what cannot be marked must not be published.
    pub(super) writable: Writable,
}

impl SqliteStore {
    /// The store of this table on this pool. Nothing is connected to before it is used.
    ///
    /// # Errors
    /// [`InvalidTable`] if SQLite cannot hold such a table.
    pub fn new(pool: SqlitePool, table: OutboxTable) -> Result<Self, InvalidTable> {
        let statements = SqliteStatements::new(&table)?;
        Ok(Self::of(pool, table, statements))
    }

    fn of(pool: SqlitePool, table: OutboxTable, statements: SqliteStatements) -> Self {
        let (place, writable) = (OnceCell::new(), Writable::default());
        Self { shared: Arc::new(Shared { pool, table, statements, place, writable }) }
    }

    /// Sets what becomes of a published row. To be set before the store is cloned: clones keep what they have.
    pub fn with_settling(self, settling: Settling) -> Self {
        let (pool, table) = (self.pool().clone(), self.table().clone());
        let statements = self.shared.statements.clone().with_settling(&table, settling);
        Self::of(pool, table, statements)
    }

    /// The table.
    pub fn table(&self) -> &OutboxTable {
        &self.shared.table
    }

    /// The pool.
    pub fn pool(&self) -> &SqlitePool {
        &self.shared.pool
    }
}

impl Shared {
    /// Takes a connection from the pool.
    pub(super) async fn connection(&self, operation: StoreOperation) -> Result<Lent, StoreError> {
        Lent::from(&self.pool).await.map_err(|error| store_error(operation, error))
    }

    /// The same, once it is known where the database lives.
    async fn connection_to_place(&self, operation: StoreOperation) -> Result<Lent, StoreError> {
        let mut connection = self.connection(operation).await?;
        self.place(connection.get().map_err(|error| store_error(operation, error))?, operation).await?;
        self.refuse_uncommitted(&mut connection, operation).await?;
        Ok(connection)
    }

    /// Refuses a connection that reads what others have not committed.
    pub(super) async fn refuse_uncommitted(
        &self,
        connection: &mut Lent,
        operation: StoreOperation,
    ) -> Result<(), StoreError> {
        if !self.place.get().is_some_and(Place::may_read_uncommitted) {
            return Ok(());
        }
        let answer =
            async { sqlx::query_scalar(meaning::ASK_READ_UNCOMMITTED).fetch_one(connection.get()?).await };
        match answer.await.map_err(|error| store_error(operation, error))? {
            0_i64 => Ok(()),
            _ => Err(StoreError::permanent(operation, meaning::READ_UNCOMMITTED.into_words())),
        }
    }

    /// Where the database lives; asked once.
    pub(super) async fn place(
        &self,
        connection: &mut SqliteConnection,
        operation: StoreOperation,
    ) -> Result<&Place, StoreError> {
        let schema = self.table.schema_on(Dialect::Sqlite);
        self.place.get_or_try_init(|| place::find(&self.pool, connection, schema, operation)).await
    }

    /// Where the database lives, if that is known.
    pub(super) fn known_place(&self) -> Option<&Place> {
        self.place.get()
    }

    /// Whether what is published could be marked: a probe asks each time.
    fn verify_writable(&self, operation: StoreOperation) -> Result<(), StoreError> {
        self.place.get().map_or(Ok(()), Place::verify_writable).map_err(|error| error.error(operation))
    }

    /// Whether the database is still where it was. For after a statement: it may have run in another file.
    pub(super) fn verify_place(&self, operation: StoreOperation) -> Result<(), StoreError> {
        self.place.get().map_or(Ok(()), Place::verify).map_err(|error| error.error(operation))
    }

    async fn look_at(&self, tenant: &TenantId, limit: NonZeroU32) -> Result<Vec<OutboxMessage>, StoreError> {
        const OPERATION: StoreOperation = StoreOperation::Pending;
        let mut connection = self.connection_to_place(OPERATION).await?;
        let rows = async {
            sqlx::query(AssertSqlSafe(self.statements.pending.as_str()))
                .bind(tenant.as_str().to_owned())
                .bind(i64::from(limit.get()))
                .fetch_all(connection.get()?)
                .await
        };
        let rows = rows.await.map_err(|error| store_error(OPERATION, error))?;
        self.verify_place(OPERATION)?;
        decode_all(rows.iter().map(row::message), &self.table, Dialect::Sqlite, OPERATION)
    }

    async fn find_oldest(&self, tenants: &Tenants) -> Result<Vec<OldestPending>, StoreError> {
        const OPERATION: StoreOperation = StoreOperation::Probe;
        let statements = &self.statements;
        let probe = match tenants {
            Tenants::Named(names) => {
                sqlx::query(AssertSqlSafe(statements.probe_named.as_str())).bind(json_tenants(names.iter()))
            }
            Tenants::Discovered => sqlx::query(AssertSqlSafe(statements.probe.as_str())),
            other => {
                let unknown = format!("this store does not know how to look for tenants by {other:?}");
                return Err(StoreError::permanent(OPERATION, unknown));
            }
        };
        let mut connection = self.connection_to_place(OPERATION).await?;
        let rows = async { probe.fetch_all(connection.get()?).await };
        let rows = rows.await.map_err(|error| store_error(OPERATION, error))?;
        self.verify_place(OPERATION)?;
        self.verify_writable(OPERATION)?;
        Ok(rows.iter().filter_map(row::oldest).collect())
    }

    /// Asks whether the database answers, and still has the table.
    pub(super) async fn prove_alive(&self, operation: StoreOperation) -> Result<(), StoreError> {
        let mut connection = self.connection(operation).await?;
        let answer = async {
            sqlx::query(AssertSqlSafe(self.statements.prove_alive.as_str())).execute(connection.get()?).await
        };
        answer.await.map(drop).map_err(|error| store_error(operation, error))
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn source(&self) -> &str {
        self.shared.table.source()
    }

    /// No bound: a claim holds no connection.
    fn max_claims(&self) -> Option<NonZeroU32> {
        None
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        within(request.timeout, StoreOperation::Probe, self.shared.find_oldest(&request.tenants))
            .await
            .map(Probed::from)
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        within(request.timeout, StoreOperation::Claim, super::claim::take(&self.shared, request)).await
    }
}

#[async_trait]
impl Inspect for SqliteStore {
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        within(
            request.timeout,
            StoreOperation::Pending,
            self.shared.look_at(&request.tenant_id, request.limit),
        )
        .await
    }
}
