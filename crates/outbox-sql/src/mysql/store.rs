//! The store: an outbox table, seen by one replica through a driver.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{OutboxMessage, PendingRequest, Settling, StoreError, StoreOperation};

use super::driver::MySqlDriver;
use super::error::relay_rights;
use super::{ASK_SERVER, KnownServer, MySqlStatements};
use crate::deadline::within;
use crate::dialect::Dialect;
use crate::driver::{Asking as _, Bind, Driver, Failed, Question, Session};
use crate::row::{Cell, Decoding};
use crate::table::{InvalidTable, OutboxTable};

/// How long a claim's session may be silent.
const MAX_SILENCE: Duration = Duration::from_secs(600);

/// The store of any driver: what the one of each ORM wraps.
#[derive(Debug, Clone)]
pub struct MySqlStore<D> {
    pub(super) shared: Arc<Shared<D>>,
}

/// What a store is made of. Its claims have it as well.
#[derive(Debug, Clone)]
pub(super) struct Shared<D> {
    pub(super) driver: D,
    pub(super) table: OutboxTable,
    /// Schema and table, for a person to read.
    pub(super) name: Arc<str>,
    pub(super) statements: MySqlStatements,
    pub(super) server: Arc<KnownServer>,
    pub(super) max_silence: Duration,
    pub(super) settling: Settling,
}

/// What a server said of itself and of a session: see [`KnownServer::learn`].
type Said = (i64, String, String);

impl<D: Driver> MySqlStore<D> {
    /// The table that is described, through this driver.
    ///
    /// # Errors
    /// [`InvalidTable`] if MySQL cannot hold such a table.
    pub fn new(driver: D, table: OutboxTable) -> Result<Self, InvalidTable> {
        let shared = Shared {
            driver,
            name: table.display_name(Dialect::MySql).into(),
            statements: MySqlStatements::new(&table)?,
            table,
            server: Arc::default(),
            max_silence: MAX_SILENCE,
            settling: Settling::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Sets how long the server hears nothing from a claim before it ends its session.
    pub fn with_max_silence(mut self, max_silence: Duration) -> Self {
        Arc::make_mut(&mut self.shared).max_silence = max_silence;
        self
    }

    /// Sets what becomes of a published row.
    pub fn with_settling(mut self, settling: Settling) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        shared.statements = shared.statements.clone().with_settling(&shared.table, settling);
        shared.settling = settling;
        self
    }

    /// The table's description.
    pub fn table(&self) -> &OutboxTable {
        &self.shared.table
    }

    /// The driver.
    pub fn driver(&self) -> &D {
        &self.shared.driver
    }

    /// How many tenants it can hold at once.
    pub fn max_claims(&self) -> Option<NonZeroU32> {
        self.shared.driver.max_sessions()
    }
}

impl<D: MySqlDriver> MySqlStore<D> {
    /// A tenant's oldest pending messages.
    ///
    /// # Errors
    /// What a statement or the decoding answers.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        let operation = StoreOperation::Pending;
        within(request.timeout, operation, async {
            self.know_server(operation).await?;
            let rows = self.look_at(request).await;
            let rows = rows.map_err(|error| self.shared.failed(operation, error))?;
            D::Session::messages(rows, self.shared.decoding(operation))
        })
        .await
    }

    async fn look_at(
        &self,
        request: &PendingRequest,
    ) -> Result<Vec<<D::Session as Session>::Row>, Failed<D>> {
        let limit = i64::from(request.limit.get());
        let binds = [Bind::Text(request.tenant_id.as_str()), Bind::Integer(limit)];
        let mut session = self.shared.driver.acquire().await?;
        let rows = session.read(Question::named(&self.shared.statements.pending, &binds)).await?;
        session.release();
        Ok(rows)
    }

    /// Before anything is read or claimed, where the server is not known.
    pub(super) async fn know_server(&self, operation: StoreOperation) -> Result<(), StoreError> {
        if self.shared.server.is_known() {
            return Ok(());
        }
        let asked = self.ask_server().await;
        let (session, (autocommit, name, turned)) =
            asked.map_err(|error| self.shared.failed(operation, error))?;
        self.shared.server.learn(operation, (autocommit, &name, &turned))?;
        session.release();
        Ok(())
    }

    pub(super) async fn ask_server(&self) -> Result<(D::Session, Said), Failed<D>> {
        let mut session = self.shared.driver.acquire().await?;
        let mut answer = session.ask_one(Question::unnamed(ASK_SERVER, &[])).await?;
        let mut said = || -> Cell<Said> { Ok((answer.take(0)?, answer.take(1)?, answer.take(2)?)) };
        let said = said().map_err(D::Session::unreadable)?;
        Ok((session, said))
    }
}

impl<D: Driver> Shared<D> {
    /// Says what a driver's error means, and what to do.
    pub(super) fn failed(&self, operation: StoreOperation, error: Failed<D>) -> StoreError {
        let meaning = self.driver.meaning(&error, &self.name, relay_rights(self.settling));
        meaning.store_error(operation, error)
    }

    pub(super) fn decoding(&self, operation: StoreOperation) -> Decoding<'_> {
        Decoding::of(&self.table, Dialect::MySql, operation)
    }
}

/// Makes the store of an ORM: the struct that is documented here, a newtype of [`MySqlStore`] over a driver.
#[doc(hidden)]
#[macro_export]
macro_rules! mysql_store {
    ($(#[$documentation:meta])* $driver:ty) => {
        $(#[$documentation])*
        #[derive(Debug, Clone)]
        pub struct MySqlStore($crate::mysql::MySqlStore<$driver>);

        impl MySqlStore {
            /// Sets how long the server hears nothing from a claim before it ends its session and frees the tenant, in
            /// whole seconds, at least one. Default 10 minutes.
            ///
            /// It is the bound within which a holder is noticed whose machine or network vanished without a word,
            /// unless TCP keepalive notices it before. The relay says something between two messages: it has to be
            /// longer than the publisher's deadline (`publish_timeout`), or a slow publish loses its claim and is
            /// repeated.
            pub fn with_max_silence(self, max_silence: std::time::Duration) -> Self {
                Self(self.0.with_max_silence(max_silence))
            }

            /// Sets what becomes of a published row. Deleting it needs the right to, which a claim looks for as it does
            /// for that of marking.
            pub fn with_settling(self, settling: outbox_core::Settling) -> Self {
                Self(self.0.with_settling(settling))
            }

            /// The table's description.
            pub fn table(&self) -> &$crate::OutboxTable {
                self.0.table()
            }

            /// Compares the database with what the store needs: the table and the table of claims, their engine,
            /// columns, types, index and privileges, the sentinel; the server's version, a read-only server, settings
            /// that break a promise, a cluster with several nodes to write to. Nothing is found if all is well. Changes
            /// nothing.
            ///
            /// # Errors
            /// [`StoreError`](outbox_core::StoreError), if the database cannot be asked within 30 s.
            pub async fn check(&self) -> Result<Vec<$crate::check::Finding>, outbox_core::StoreError> {
                self.0.check().await
            }
        }

        $crate::store_of!(MySqlStore);
    };
}
