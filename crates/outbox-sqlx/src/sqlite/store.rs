//! The store: an outbox table, seen by one replica.

use outbox_sql::{InvalidTable, OutboxTable, sqlite};
use sqlx::SqlitePool;

use super::driver::OnPool;

outbox_sql::sqlite_store! {
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
    OnPool
}

impl SqliteStore {
    /// The store of this table on this pool. Nothing is connected to before it is used.
    ///
    /// # Errors
    /// [`InvalidTable`] if SQLite cannot hold such a table.
    pub fn new(pool: SqlitePool, table: OutboxTable) -> Result<Self, InvalidTable> {
        Ok(Self(sqlite::SqliteStore::new(OnPool(pool), table)?))
    }

    /// The pool.
    pub fn pool(&self) -> &SqlitePool {
        &self.0.driver().0
    }
}
