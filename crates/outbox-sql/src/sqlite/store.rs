//! The store: an outbox table, seen by one replica through a driver.

use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::{OutboxMessage, PendingRequest, Settling, StoreError, StoreOperation};
use tokio::sync::OnceCell;

use super::driver::{Reading, Refused, SqliteDriver};
use super::place::FIND_FILE;
use super::{NoPlace, OpenedAs, Place, SqliteStatements, Writable, meaning};
use crate::deadline::within;
use crate::dialect::Dialect;
use crate::driver::{Answer, Asking, Bind, Question};
use crate::row::{Unreadable, decode_all};
use crate::table::{InvalidTable, OutboxTable};

/// The store of any driver: what the one of each ORM wraps.
#[derive(Debug, Clone)]
pub struct SqliteStore<D> {
    pub(super) shared: Arc<Shared<D>>,
}

/// What the store, its clones and its claims share.
#[derive(Debug)]
pub(super) struct Shared<D> {
    pub(super) driver: D,
    pub(super) table: OutboxTable,
    pub(super) statements: SqliteStatements,
    place: OnceCell<Place>,
    /// Whether the database is known to take writes: what cannot be marked must not be published.
    pub(super) writable: Writable,
}

impl<D: SqliteDriver> SqliteStore<D> {
    /// The table that is described, through this driver.
    ///
    /// # Errors
    /// [`InvalidTable`] if SQLite cannot hold such a table.
    pub fn new(driver: D, table: OutboxTable) -> Result<Self, InvalidTable> {
        let statements = SqliteStatements::new(&table)?;
        Ok(Self::of(driver, table, statements))
    }

    fn of(driver: D, table: OutboxTable, statements: SqliteStatements) -> Self {
        let (place, writable) = (OnceCell::new(), Writable::default());
        Self { shared: Arc::new(Shared { driver, table, statements, place, writable }) }
    }

    /// Sets what becomes of a published row.
    pub fn with_settling(self, settling: Settling) -> Self {
        let (driver, table) = (self.driver().clone(), self.table().clone());
        let statements = self.shared.statements.clone().with_settling(&table, settling);
        Self::of(driver, table, statements)
    }

    /// The table's description.
    pub fn table(&self) -> &OutboxTable {
        &self.shared.table
    }

    /// The driver.
    pub fn driver(&self) -> &D {
        &self.shared.driver
    }

    /// No bound: a claim holds no connection.
    pub fn max_claims(&self) -> Option<NonZeroU32> {
        None
    }

    /// A tenant's oldest pending messages.
    ///
    /// # Errors
    /// What a statement or the decoding answers.
    pub async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        within(request.timeout, StoreOperation::Pending, self.shared.look_at(request)).await
    }
}

impl<D: SqliteDriver> Shared<D> {
    /// Where the database lives; asked once.
    pub(super) async fn place(&self, operation: StoreOperation) -> Result<&Place, StoreError> {
        self.place.get_or_try_init(|| self.find_place(operation)).await
    }

    async fn find_place(&self, operation: StoreOperation) -> Result<Place, StoreError> {
        let schema = self.table.schema_on(Dialect::Sqlite);
        let binds = [Bind::Text(schema)];
        let found = self.driver.ask(Reading::Anyhow, Question::unnamed(FIND_FILE, &binds)).await;
        // No row if there is no such schema, and no name if it is in memory.
        let file = found.map_err(|refused| refusal::<D>(operation, refused))?.into_iter().next();
        let file = file.map(|mut row| row.take(0)).transpose();
        let file = file.map_err(|why| refusal::<D>(operation, D::unreadable(why).into()))?;
        let opened = self.driver.opened_as();
        let name = opened.clone().unwrap_or_else(|_| OpenedAs::unknown());
        let place = Place::of(schema, file, &name, self.driver.only_connection());
        place.map_err(|error| match (error, opened) {
            (NoPlace::PrivateMemory, Err(unknown)) => StoreError::permanent(operation, unknown),
            (error, _) => error.error(operation),
        })
    }

    /// Whether what is published could be marked: a probe asks each time.
    pub(super) fn verify_writable(&self, operation: StoreOperation) -> Result<(), StoreError> {
        self.place.get().map_or(Ok(()), Place::verify_writable).map_err(|error| error.error(operation))
    }

    /// Whether the database is still where it was. For after a statement: it may have run in another file.
    pub(super) fn verify_place(&self, operation: StoreOperation) -> Result<(), StoreError> {
        self.place.get().map_or(Ok(()), Place::verify).map_err(|error| error.error(operation))
    }

    /// What a statement that reads needs of its connection.
    pub(super) fn reading(&self) -> Reading {
        if self.place.get().is_some_and(Place::may_read_uncommitted) {
            Reading::Committed
        } else {
            Reading::Anyhow
        }
    }

    async fn look_at(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        const OPERATION: StoreOperation = StoreOperation::Pending;
        self.place(OPERATION).await?;
        let limit = i64::from(request.limit.get());
        let binds = [Bind::Text(request.tenant_id.as_str()), Bind::Integer(limit)];
        let question = Question::named(&self.statements.pending, &binds);
        let rows = self.driver.read(self.reading(), question).await;
        let rows = rows.map_err(|refused| refusal::<D>(OPERATION, refused))?;
        self.verify_place(OPERATION)?;
        decode_all(rows, &self.table, Dialect::Sqlite, OPERATION)
    }
}

/// Says why nothing was read, and what to do.
pub(super) fn refusal<D: SqliteDriver>(operation: StoreOperation, refused: Refused<D::Error>) -> StoreError {
    match refused {
        Refused::ReadUncommitted => StoreError::permanent(operation, meaning::READ_UNCOMMITTED.into_words()),
        Refused::Failed(error) => D::meaning(&error).store_error(operation, error),
    }
}

/// What a store asks through its driver, as of a connection.
#[derive(Debug)]
pub(super) struct Through<'s, D>(pub(super) &'s Shared<D>);

impl<D: SqliteDriver> Asking for Through<'_, D> {
    type Error = Refused<D::Error>;

    async fn run(&mut self, text: &str) -> Result<(), Self::Error> {
        self.ask(Question::unnamed(text, &[])).await.map(drop)
    }

    async fn ask(&mut self, question: Question<'_>) -> Result<Vec<Answer>, Self::Error> {
        self.0.driver.ask(self.0.reading(), question).await
    }

    fn unreadable(why: Unreadable) -> Self::Error {
        D::unreadable(why).into()
    }
}

/// Makes the store of an ORM: the struct that is documented here, a newtype of [`SqliteStore`] over a driver.
#[doc(hidden)]
#[macro_export]
macro_rules! sqlite_store {
    ($(#[$documentation:meta])* $driver:ty) => {
        $(#[$documentation])*
        #[derive(Debug, Clone)]
        pub struct SqliteStore($crate::sqlite::SqliteStore<$driver>);

        impl SqliteStore {
            /// Sets what becomes of a published row. To be set before the store is cloned: clones keep what they have.
            pub fn with_settling(self, settling: outbox_core::Settling) -> Self {
                Self(self.0.with_settling(settling))
            }

            /// The table.
            pub fn table(&self) -> &$crate::OutboxTable {
                self.0.table()
            }

            /// Compares the database with what the store needs: the table, its columns and types, the index, whether it
            /// takes writes and lock files, the journal mode and the busy timeout. Nothing is found if all is well.
            /// Changes nothing, but may leave an empty lock file.
            ///
            /// # Errors
            /// [`StoreError`](outbox_core::StoreError), if the database cannot be asked within 30 s.
            pub async fn check(&self) -> Result<Vec<$crate::check::Finding>, outbox_core::StoreError> {
                self.0.check().await
            }
        }

        $crate::store_of!(SqliteStore);
    };
}
