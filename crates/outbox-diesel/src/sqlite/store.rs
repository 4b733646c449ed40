//! The store: looking, and what a claim begins with.

use std::num::NonZeroU32;
use std::sync::Arc;

use diesel::sql_types::{BigInt, Text};
use diesel::{RunQueryDsl, SqliteConnection};
use outbox_core::{
    ClaimOutcome, ClaimRequest, Inspect, OldestPending, OutboxMessage, PendingRequest, ProbeRequest, Probed,
    Settling, Store, StoreError, StoreOperation, TenantId, Tenants, async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::row::decode_all;
use outbox_sql::sqlite::{Pauses, Place, Writable, meaning};
use outbox_sql::sqlite::{SqliteStatements, json_tenants};
use outbox_sql::table::{InvalidTable, OutboxTable};
use tokio::sync::OnceCell;

use super::connection::SqliteConnections;
use super::error::{Failure, store_error};
use super::place;
use super::row::{self, Values};
use crate::statement::Statement;

/// An outbox table of a SQLite database. Clones share the connections; each stands for the same replica.
///
/// A claim is a lock file of the operating system beside the database, one for each tenant: no transaction is
/// open and no connection is held while the relay publishes, so the application writes on, and a killed
/// process frees its tenants at once. Leave the files called `…-outbox-….lock` where they are: deleting one
/// that is held lets a second holder in (the first one notices when it verifies). A relay on sqlx takes the
/// same locks, so that both can run on one table.
///
/// The database's directory has to be writable, on a local disk. Use WAL (`journal_mode`) and a busy timeout;
/// [`check`](Self::check) says what is missing. In memory, use a database that connections share by its name
/// (`file:NAME?mode=memory&cache=shared`).
///
/// Needs a tokio runtime, of either flavour.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(super) shared: Arc<Shared>,
}

/// What the store, its clones and its claims share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connections: SqliteConnections,
    pub(super) table: OutboxTable,
    pub(super) statements: SqliteStatements,
    place: OnceCell<Place>,
    /// Whether the database is known to take writes: what cannot be marked must not be published.
    pub(super) writable: Writable,
}

impl SqliteStore {
    /// The store of this table on these connections: a [`SqliteConnector`](super::SqliteConnector), or a pool.
    /// Nothing is connected to before it is used.
    ///
    /// # Errors
    /// [`InvalidTable`] if SQLite cannot hold such a table.
    pub fn new(connections: impl Into<SqliteConnections>, table: OutboxTable) -> Result<Self, InvalidTable> {
        let statements = SqliteStatements::new(&table)?;
        Ok(Self::of(connections.into(), table, statements))
    }

    fn of(connections: SqliteConnections, table: OutboxTable, statements: SqliteStatements) -> Self {
        let (place, writable) = (OnceCell::new(), Writable::default());
        Self { shared: Arc::new(Shared { connections, table, statements, place, writable }) }
    }

    /// Sets what becomes of a published row. To be set before the store is cloned: clones keep what they have.
    pub fn with_settling(self, settling: Settling) -> Self {
        let (connections, table) = (self.connections().clone(), self.table().clone());
        let statements = self.shared.statements.clone().with_settling(&table, settling);
        Self::of(connections, table, statements)
    }

    /// The table.
    pub fn table(&self) -> &OutboxTable {
        &self.shared.table
    }

    /// The connections.
    pub fn connections(&self) -> &SqliteConnections {
        &self.shared.connections
    }
}

impl Shared {
    /// Where the database lives; asked once.
    pub(super) async fn place(&self, operation: StoreOperation) -> Result<&Place, StoreError> {
        let schema = self.table.schema_on(Dialect::Sqlite);
        self.place.get_or_try_init(|| place::find(&self.connections, schema, operation)).await
    }

    /// Whether what is published could be marked: a probe asks each time.
    fn verify_writable(&self, operation: StoreOperation) -> Result<(), StoreError> {
        self.place.get().map_or(Ok(()), Place::verify_writable).map_err(|error| error.error(operation))
    }

    /// Whether the database is still where it was. For after a statement: it may have run in another file.
    pub(super) fn verify_place(&self, operation: StoreOperation) -> Result<(), StoreError> {
        self.place.get().map_or(Ok(()), Place::verify).map_err(|error| error.error(operation))
    }

    /// Runs statements that read, again and again while a connection of the same shared cache writes.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl Fn(&Self, &mut SqliteConnection) -> Result<T, Failure> + Clone + Send + 'static,
    ) -> Result<T, Failure> {
        let mut pauses = Pauses::default();
        loop {
            let (shared, read) = (Arc::clone(self), read.clone());
            let read = move |connection: &mut SqliteConnection| {
                shared.refuse_uncommitted(connection)?;
                read(&shared, connection)
            };
            match self.connections.run(read).await {
                Err(failure) if failure.is_locked() => tokio::time::sleep(pauses.next_pause()).await,
                outcome => return outcome,
            }
        }
    }

    fn refuse_uncommitted(&self, connection: &mut SqliteConnection) -> Result<(), Failure> {
        if !self.place.get().is_some_and(Place::may_read_uncommitted) {
            return Ok(());
        }
        let question = Statement::<_, BigInt>::new(meaning::ASK_READ_UNCOMMITTED);
        match RunQueryDsl::get_result::<i64>(question, connection)? {
            0 => Ok(()),
            _ => Err(Failure::ReadUncommitted),
        }
    }

    async fn look_at(
        self: &Arc<Self>,
        tenant: &TenantId,
        limit: NonZeroU32,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        const OPERATION: StoreOperation = StoreOperation::Pending;
        self.place(OPERATION).await?;
        let tenant = tenant.clone();
        let rows = self.read(move |shared, connection| {
            let statement = Statement::new(&shared.statements.pending)
                .bind::<Text>(tenant.as_str())
                .bind::<BigInt>(i64::from(limit.get()));
            row::read(connection, statement, Values::message)
        });
        let rows = rows.await.map_err(|failure| store_error(OPERATION, failure))?;
        self.verify_place(OPERATION)?;
        decode_all(rows, &self.table, Dialect::Sqlite, OPERATION)
    }

    async fn find_oldest(self: &Arc<Self>, tenants: &Tenants) -> Result<Vec<OldestPending>, StoreError> {
        const OPERATION: StoreOperation = StoreOperation::Probe;
        let asked_for = match tenants {
            Tenants::Named(names) => Some(json_tenants(names.iter())),
            Tenants::Discovered => None,
            other => {
                let unknown = format!("this store does not know how to look for tenants by {other:?}");
                return Err(StoreError::permanent(OPERATION, unknown));
            }
        };
        self.place(OPERATION).await?;
        let rows = self.read(move |shared, connection| {
            let statement = match &asked_for {
                Some(names) => Statement::new(&shared.statements.probe_named).bind::<Text>(names.as_str()),
                None => Statement::new(&shared.statements.probe),
            };
            row::read(connection, statement, Values::oldest)
        });
        let rows = rows.await.map_err(|failure| store_error(OPERATION, failure))?;
        self.verify_place(OPERATION)?;
        self.verify_writable(OPERATION)?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Asks whether the database answers, and still has the table.
    pub(super) async fn prove_alive(self: &Arc<Self>, operation: StoreOperation) -> Result<(), StoreError> {
        let answer = self.read(|shared, connection| {
            row::read(connection, Statement::new(&shared.statements.prove_alive), |_| ()).map(drop)
        });
        answer.await.map_err(|failure| store_error(operation, failure))
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
