//! The store: an outbox table, seen by one replica through a driver.

use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::{OutboxMessage, PendingRequest, Settling, StoreError, StoreOperation};

use super::driver::PostgresDriver;
use super::encoding::KnownEncoding;
use super::error::relay_rights;
use super::server::KnownServer;
use super::watermark::{Watermark, Watermarks};
use super::{BEGIN_READ, Durability, KnownTraits, PostgresStatements};
use crate::deadline::within;
use crate::dialect::Dialect;
use crate::driver::{Asking as _, Bind, Driver, Failed, Question, Session};
use crate::named::Named;
use crate::row::Decoding;
use crate::table::{InvalidTable, OutboxTable};

/// The store of any driver: what the one of each ORM wraps.
#[derive(Debug, Clone)]
pub struct PostgresStore<D> {
    pub(super) shared: Arc<Shared<D>>,
}

/// What a store is made of. Its claims have it as well.
#[derive(Debug, Clone)]
pub(super) struct Shared<D> {
    pub(super) driver: D,
    pub(super) table: OutboxTable,
    /// Schema and table, for a person to read.
    pub(super) name: Arc<str>,
    pub(super) statements: PostgresStatements,
    pub(super) traits: Arc<KnownTraits>,
    pub(super) encoding: KnownEncoding,
    pub(super) server: Arc<KnownServer>,
    pub(super) named: Arc<Named>,
    pub(super) settling: Settling,
    pub(super) durability: Durability,
    pub(super) watermarks: Option<Arc<Watermarks>>,
}

impl<D: Driver> PostgresStore<D> {
    /// The table that is described, through this driver.
    ///
    /// # Errors
    /// [`InvalidTable`] if PostgreSQL cannot hold such a table.
    pub fn new(driver: D, table: OutboxTable) -> Result<Self, InvalidTable> {
        let shared = Shared {
            driver,
            name: table.display_name(Dialect::Postgres).into(),
            statements: PostgresStatements::new(&table)?,
            table,
            traits: Arc::default(),
            encoding: KnownEncoding::default(),
            server: Arc::default(),
            named: Arc::default(),
            settling: Settling::default(),
            durability: Durability::default(),
            watermarks: None,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Sets what becomes of a published row.
    pub fn with_settling(mut self, settling: Settling) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        shared.statements = shared.statements.clone().with_settling(&shared.table, settling);
        shared.settling = settling;
        self
    }

    /// Sets whether the commit of a mark waits for the disk.
    pub fn with_durability(mut self, durability: Durability) -> Self {
        Arc::make_mut(&mut self.shared).durability = durability;
        self
    }

    /// Lets claims and probes begin at a watermark.
    pub fn with_watermark(mut self, watermark: Watermark) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        shared.watermarks = Some(Arc::new(Watermarks::new(watermark)));
        // It has to hear itself of another server: a store that it was made of has watermarks of its own.
        shared.server = Arc::default();
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

    /// The driver, to be set in another way.
    pub fn driver_mut(&mut self) -> &mut D {
        &mut Arc::make_mut(&mut self.shared).driver
    }

    /// How many tenants it can hold at once.
    pub fn max_claims(&self) -> Option<NonZeroU32> {
        self.shared.driver.max_sessions()
    }
}

impl<D: PostgresDriver> PostgresStore<D> {
    /// A tenant's oldest pending messages.
    ///
    /// # Errors
    /// What a statement or the decoding answers.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        let operation = StoreOperation::Pending;
        let read = async {
            let rows = self.look_at(request).await;
            let rows = rows.map_err(|error| self.shared.failed(operation, error))?;
            D::Session::messages(rows, self.shared.decoding(operation))
        };
        within(request.timeout, operation, read).await.inspect_err(|_| self.shared.forget_watermarks())
    }

    async fn look_at(
        &self,
        request: &PendingRequest,
    ) -> Result<Vec<<D::Session as Session>::Row>, Failed<D>> {
        let limit = i64::from(request.limit.get());
        let binds = [Bind::Text(request.tenant_id.as_str()), Bind::Integer(limit)];
        let mut session = self.begin_look().await?;
        let rows = session.read(Question::named(&self.shared.statements.pending, &binds)).await?;
        self.end_look(session).await?;
        Ok(rows)
    }

    /// A session for a statement that only reads.
    ///
    /// Outside of a transaction its snapshot is its own, whatever the server's default isolation. Without named
    /// statements it is in one, so that a pooler keeps preparing and running it on one server session.
    pub(super) async fn begin_look(&self) -> Result<D::Session, Failed<D>> {
        let mut session = self.shared.driver.acquire().await?;
        if !self.shared.driver.names_statements() {
            session.run(BEGIN_READ).await?;
        }
        Ok(session)
    }

    /// The statement was answered.
    pub(super) async fn end_look(&self, mut session: D::Session) -> Result<(), Failed<D>> {
        if !self.shared.driver.names_statements() {
            session.run("COMMIT").await?;
        }
        session.release();
        Ok(())
    }
}

impl<D: Driver> Shared<D> {
    /// Says what a driver's error means, and what to do.
    pub(super) fn failed(&self, operation: StoreOperation, error: Failed<D>) -> StoreError {
        let meaning = self.driver.meaning(&error, &self.name, relay_rights(self.settling));
        meaning.store_error(operation, error)
    }

    pub(super) fn decoding(&self, operation: StoreOperation) -> Decoding<'_> {
        Decoding::of(&self.table, Dialect::Postgres, operation)
    }

    /// Another server answers: what is known of the one before need not hold of it.
    pub(super) fn forget_server(&self) {
        self.forget_watermarks();
        self.traits.forget();
        self.encoding.forget();
    }

    pub(super) fn forget_watermarks(&self) {
        if let Some(watermarks) = &self.watermarks {
            watermarks.forget();
        }
    }
}

/// Makes the store of an ORM: the struct that is documented here, a newtype of [`PostgresStore`] over a driver.
#[doc(hidden)]
#[macro_export]
macro_rules! postgres_store {
    ($(#[$documentation:meta])* $driver:ty) => {
        $(#[$documentation])*
        #[derive(Debug, Clone)]
        pub struct PostgresStore($crate::postgres::PostgresStore<$driver>);

        impl PostgresStore {
            /// Sets what becomes of a published row. Deleting it needs the right to, which a claim looks for as it does
            /// for that of marking.
            pub fn with_settling(self, settling: outbox_core::Settling) -> Self {
                Self(self.0.with_settling(settling))
            }

            /// Sets whether the commit of a mark waits for the disk.
            ///
            /// It is set for the claim's own transaction, and for nothing else on its connection. PostgreSQL only: of
            /// the databases here no other can say so for one transaction.
            pub fn with_durability(self, durability: $crate::postgres::Durability) -> Self {
                Self(self.0.with_durability(durability))
            }

            /// Lets claims and probes begin at a *watermark* of the tenant: above the messages that this store settled,
            /// and not at dead index entries of theirs, of which a large drain or an old snapshot leaves many.
            ///
            /// Nothing is overtaken by it that would not be without. It never rises above the id up to which every
            /// message is known to be final, which a claim asks for now and then. That holds where every id is drawn
            /// from the column's own sequence, one at a time, by an `INSERT` into the table itself: a claim and
            /// [`check`](Self::check) refuse a partitioned table and a sequence that hands out several at once, and the
            /// role needs `SELECT` on the sequence. What is pending below a watermark all the same (an id drawn by
            /// hand, a row that was made pending again) is found by a look from zero, each
            /// [`with_look_every`](outbox_sql::postgres::watermark::Watermark::with_look_every).
            ///
            /// Watermarks are in memory, shared by clones made afterwards. Every error of the database forgets them.
            pub fn with_watermark(self, watermark: $crate::postgres::watermark::Watermark) -> Self {
                Self(self.0.with_watermark(watermark))
            }

            /// The table's description.
            pub fn table(&self) -> &$crate::OutboxTable {
                self.0.table()
            }

            /// Compares the database with what the store needs: the table, its columns and types, collation, index,
            /// sequence, privileges, row security, a standby, a transaction pooler. Nothing is found if all is well.
            /// Changes nothing.
            ///
            /// # Errors
            /// [`StoreError`](outbox_core::StoreError), if the database cannot be asked within 30 s.
            pub async fn check(&self) -> Result<Vec<$crate::check::Finding>, outbox_core::StoreError> {
                self.0.check().await
            }
        }

        $crate::store_of!(PostgresStore);
    };
}
