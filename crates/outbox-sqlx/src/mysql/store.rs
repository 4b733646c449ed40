//! The store: an outbox table, seen by one replica.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    ClaimOutcome, ClaimRequest, Inspect, OutboxMessage, PendingRequest, ProbeRequest, Probed, Settling,
    Store, StoreError, StoreOperation, Tenants, async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::mysql::{ASK_SERVER, KnownServer, Walk, json_tenants};
use outbox_sql::row::decode_all;
use outbox_sql::{InvalidTable, OutboxTable};
use sqlx::mysql::MySqlRow;
use sqlx::{AssertSqlSafe, MySqlConnection, MySqlPool};

use super::error::Context;
use super::{ArmedConnection, MySqlTable, row};

/// How long a claim's session may be silent.
const MAX_SILENCE: Duration = Duration::from_mins(10);

/// An outbox table of a MySQL or MariaDB database. Cloning is cheap; a clone shares the pool.
///
/// A claim keeps one connection of the pool until it is settled or dropped, and never needs a second. Give the
/// relay a pool of its own, of its concurrency and two more; with fewer it is correct, and slower.
///
/// Before its first probe or claim it asks for the server's name and the session's `autocommit`: `TiDB`, which locks
/// nothing, and sessions without autocommit are refused with a permanent error.
///
/// # Cancellation
/// An operation whose future is dropped, or that overruns its request's timeout, closes its connection: the pool
/// opens another when it needs one. A statement that runs at that moment ends on the server at its own end, and at
/// the latest after the request's timeout, in whole seconds (on MySQL, an `UPDATE` that does not wait has no such
/// bound); then the tenant is free.
#[derive(Debug, Clone)]
pub struct MySqlStore {
    pub(super) pool: MySqlPool,
    pub(super) table: MySqlTable,
    pub(super) display_name: Arc<str>,
    pub(super) max_silence: Duration,
    pub(super) settling: Settling,
    server: Arc<KnownServer>,
}

impl MySqlStore {
    /// The table that is described, through this pool.
    ///
    /// # Errors
    /// [`InvalidTable`] if MySQL cannot hold such a table.
    pub fn new(pool: MySqlPool, table: OutboxTable) -> Result<Self, InvalidTable> {
        let display_name = table.display_name(Dialect::MySql).into();
        let table = MySqlTable::new(table)?;
        let (max_silence, settling) = (MAX_SILENCE, Settling::default());
        Ok(Self { pool, table, display_name, max_silence, settling, server: Arc::default() })
    }

    /// Sets how long the server hears nothing from a claim before it ends its session and frees the tenant, in
    /// whole seconds, at least one. Default 10 minutes.
    ///
    /// It is the bound within which a holder is noticed whose machine or network vanished without a word, unless
    /// TCP keepalive notices it before. The relay says something between two messages: it has to be longer than
    /// the publisher's deadline (`publish_timeout`), or a slow publish loses its claim and is repeated.
    pub fn with_max_silence(mut self, max_silence: Duration) -> Self {
        self.max_silence = max_silence;
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

    pub(super) fn context(&self, operation: StoreOperation) -> Context<'_> {
        Context { operation, table: &self.display_name, settling: self.settling }
    }

    /// The table's description.
    pub fn table(&self) -> &OutboxTable {
        &self.table.description
    }

    /// The pool.
    pub fn pool(&self) -> &MySqlPool {
        &self.pool
    }

    /// Before anything is read or claimed, where the server is not known.
    async fn ask_once(&self, operation: StoreOperation) -> Result<(), StoreError> {
        if self.server.is_known() {
            return Ok(());
        }
        let (connection, (autocommit, name, turned)) =
            self.ask_server().await.map_err(|error| self.context(operation).error(error))?;
        self.server.learn(operation, (autocommit, &name, &turned))?;
        connection.give_back();
        Ok(())
    }

    pub(super) async fn ask_server(&self) -> sqlx::Result<(ArmedConnection, (i64, String, String))> {
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let answer = sqlx::query_as(ASK_SERVER).persistent(false).fetch_one(connection.get()?).await?;
        Ok((connection, answer))
    }

    async fn named(&self, json: String) -> sqlx::Result<Walk> {
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let probe = sqlx::query(AssertSqlSafe(Arc::clone(&self.table.statements.probe_named)));
        let rows = probe.bind(json.into_bytes()).fetch_all(connection.get()?).await?;
        let walk = Walk::named(rows.iter().map(row::walked).collect::<sqlx::Result<_>>()?);
        if walk.takes_writes() {
            connection.give_back();
        }
        Ok(walk)
    }

    async fn discovered(&self) -> sqlx::Result<Walk> {
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let mut walk = Walk::new();
        loop {
            let rows = self.step(connection.get()?, &walk).await?;
            if !walk.take(rows.iter().map(row::walked).collect::<sqlx::Result<_>>()?) {
                break;
            }
        }
        if walk.takes_writes() {
            connection.give_back();
        }
        Ok(walk)
    }

    async fn step(&self, connection: &mut MySqlConnection, walk: &Walk) -> sqlx::Result<Vec<MySqlRow>> {
        let (after, entries) = walk.step();
        let step = sqlx::query(AssertSqlSafe(Arc::clone(&self.table.statements.probe_next)));
        step.bind(after).bind(entries).fetch_all(connection).await
    }
}

#[async_trait]
impl Store for MySqlStore {
    fn source(&self) -> &str {
        self.table.description.source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.pool.options().get_max_connections())
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        let operation = StoreOperation::Probe;
        let context = self.context(operation);
        within(request.timeout, operation, async {
            self.ask_once(operation).await?;
            let found = match &request.tenants {
                Tenants::Named(tenants) => self.named(json_tenants(tenants.iter())).await,
                Tenants::Discovered => self.discovered().await,
                other => {
                    let unknown = format!("this store does not know how to look for tenants by {other:?}");
                    return Err(StoreError::permanent(operation, unknown));
                }
            };
            found.map_err(|error| context.error(error))?.found()
        })
        .await
        .inspect_err(|_| self.server.forget())
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let operation = StoreOperation::Claim;
        within(request.timeout, operation, async {
            self.ask_once(operation).await?;
            self.take(request).await
        })
        .await
        .inspect_err(|_| self.server.forget())
    }
}

#[async_trait]
impl Inspect for MySqlStore {
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        let operation = StoreOperation::Pending;
        let context = self.context(operation);
        let read = async {
            let mut connection = ArmedConnection::acquire(&self.pool).await?;
            let rows = sqlx::query(AssertSqlSafe(Arc::clone(&self.table.statements.pending)))
                .bind(request.tenant_id.as_str().as_bytes())
                .bind(i64::from(request.limit.get()))
                .fetch_all(connection.get()?)
                .await?;
            connection.give_back();
            Ok(rows)
        };
        within(request.timeout, operation, async {
            self.ask_once(operation).await?;
            let rows: Vec<MySqlRow> = read.await.map_err(|error| context.error(error))?;
            let raw = rows.iter().map(row::message);
            decode_all(raw, &self.table.description, Dialect::MySql, operation)
        })
        .await
    }
}
