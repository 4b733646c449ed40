//! The store: an outbox table, seen by one replica.

use outbox_sql::{InvalidTable, OutboxTable, sqlite};

use super::connection::SqliteConnections;
use super::driver::OnConnections;

outbox_sql::sqlite_store! {
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
    OnConnections
}

impl SqliteStore {
    /// The store of this table on these connections: a [`SqliteConnector`](super::SqliteConnector), or a pool.
    /// Nothing is connected to before it is used.
    ///
    /// # Errors
    /// [`InvalidTable`] if SQLite cannot hold such a table.
    pub fn new(connections: impl Into<SqliteConnections>, table: OutboxTable) -> Result<Self, InvalidTable> {
        Ok(Self(sqlite::SqliteStore::new(OnConnections(connections.into()), table)?))
    }

    /// The connections.
    pub fn connections(&self) -> &SqliteConnections {
        &self.0.driver().0
    }
}
