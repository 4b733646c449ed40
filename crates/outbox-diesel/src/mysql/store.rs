//! The store: an outbox table, seen by one replica.

use diesel_async::AsyncMysqlConnection;
use outbox_sql::{InvalidTable, OutboxTable, mysql};

use super::driver::OnPool;
use crate::pool::Pool;

outbox_sql::mysql_store! {
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
    OnPool
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
        Ok(Self(mysql::MySqlStore::new(OnPool(pool.into()), table)?))
    }

    /// The pool.
    pub fn pool(&self) -> &Pool<AsyncMysqlConnection> {
        &self.0.driver().0
    }
}
