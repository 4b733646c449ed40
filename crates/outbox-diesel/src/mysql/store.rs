//! The store: an outbox table, seen by one replica.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use diesel::mysql::Mysql;
use diesel::result::Error;
use diesel::sql_types::{BigInt, Binary, Untyped};
use diesel_async::AsyncMysqlConnection;
use outbox_core::{
    ClaimOutcome, ClaimRequest, Inspect, OutboxMessage, PendingRequest, ProbeRequest, Probed, Settling,
    Store, StoreError, StoreOperation, TenantId, Tenants, async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::mysql::{ASK_SERVER, KnownServer, Walk, json_tenants};
use outbox_sql::row::decode_all;
use outbox_sql::{InvalidTable, OutboxTable};

use super::error::Context;
use super::row::Values;
use super::{ArmedConnection, MySqlTable};
use crate::connection::Failure;
use crate::pool::Pool;
use crate::statement::Statement;

/// How long a claim's session may be silent.
const MAX_SILENCE: Duration = Duration::from_secs(600);

/// An outbox table of a MySQL or MariaDB database. Cloning is cheap; a clone shares the pool.
///
/// A claim keeps one connection of the pool until it is settled or dropped, and never needs a second. Give the
/// relay a pool of its own, of its concurrency and two more; with fewer it is correct, and slower.
///
/// Before its first probe or claim it asks for the server's name and the session's `autocommit`: `TiDB`, which locks
/// nothing, and sessions without autocommit are refused with a permanent error.
///
/// What the server says is told by its text, since Diesel keeps the error's number to itself: a server that speaks
/// another language than English (`lc_messages`) is understood less well.
///
/// # Cancellation
/// An operation whose future is dropped, or that overruns its request's timeout, closes its connection: the pool
/// opens another when it needs one. A statement that runs at that moment ends on the server at its own end, and at
/// the latest after the request's timeout, in whole seconds (on MySQL, an `UPDATE` that does not wait has no such
/// bound); then the tenant is free.
#[derive(Debug, Clone)]
pub struct MySqlStore {
    pub(super) pool: Pool<AsyncMysqlConnection>,
    pub(super) table: MySqlTable,
    pub(super) display_name: Arc<str>,
    pub(super) max_silence: Duration,
    pub(super) settling: Settling,
    server: Arc<KnownServer>,
}

impl MySqlStore {
    /// The table that is described, through this pool: one of bb8, of deadpool, or a [`Pool`] by way of an adapter.
    ///
    /// # Errors
    /// [`InvalidTable`] if MySQL cannot hold such a table.
    pub fn new(
        pool: impl Into<Pool<AsyncMysqlConnection>>,
        table: OutboxTable,
    ) -> Result<Self, InvalidTable> {
        let display_name = table.display_name(Dialect::MySql).into();
        let (pool, table) = (pool.into(), MySqlTable::new(table)?);
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
    pub fn pool(&self) -> &Pool<AsyncMysqlConnection> {
        &self.pool
    }

    async fn look_at(&self, tenant: &TenantId, limit: NonZeroU32) -> Result<Vec<Values>, Failure> {
        let pending = Statement::<Mysql, Untyped>::new(&self.table.statements.pending)
            .bind::<Binary>(tenant.as_str().as_bytes())
            .bind::<BigInt>(i64::from(limit.get()));
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let rows = pending.rows(connection.get()?).await?;
        connection.give_back();
        Ok(rows)
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

    pub(super) async fn ask_server(&self) -> Result<(ArmedConnection, (i64, String, String)), Failure> {
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let question = Statement::<Mysql, Untyped>::new(ASK_SERVER);
        let answers: Vec<Values> = question.rows(connection.get()?).await?;
        let answer = answers.first().ok_or(Error::NotFound)?;
        Ok((connection, (answer.expect(0)?, answer.expect_text(1)?, answer.expect_text(2)?)))
    }

    async fn named(&self, json: String) -> Result<Walk, Failure> {
        let probe = Statement::<Mysql, Untyped>::new(&self.table.statements.probe_named)
            .bind::<Binary>(json.into_bytes());
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let rows: Vec<Values> = probe.rows(connection.get()?).await?;
        let walk = Walk::named(rows.iter().map(Values::walked).collect::<Result<_, _>>()?);
        if walk.takes_writes() {
            connection.give_back();
        }
        Ok(walk)
    }

    async fn discovered(&self) -> Result<Walk, Failure> {
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        let mut walk = Walk::new();
        loop {
            let (after, entries) = walk.step();
            let step = Statement::<Mysql, Untyped>::new(&self.table.statements.probe_next)
                .bind::<Binary>(after.to_vec())
                .bind::<BigInt>(entries);
            let rows: Vec<Values> = step.rows(connection.get()?).await?;
            if !walk.take(rows.iter().map(Values::walked).collect::<Result<_, _>>()?) {
                break;
            }
        }
        if walk.takes_writes() {
            connection.give_back();
        }
        Ok(walk)
    }
}

#[async_trait]
impl Store for MySqlStore {
    fn source(&self) -> &str {
        self.table.description.source()
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        self.pool.adapter().max_size()
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
        within(request.timeout, operation, async {
            self.ask_once(operation).await?;
            let rows = self
                .look_at(&request.tenant_id, request.limit)
                .await
                .map_err(|error| context.error(error))?;
            let raw = rows.iter().map(Values::message);
            decode_all(raw, &self.table.description, Dialect::MySql, operation)
        })
        .await
    }
}
