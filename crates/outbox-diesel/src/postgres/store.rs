//! The store: an outbox table, seen by one replica.

use diesel_async::AsyncPgConnection;
use outbox_sql::{InvalidTable, OutboxTable, postgres};

use super::driver::OnPool;
use crate::pool::Pool;

outbox_sql::postgres_store! {
    /// An outbox table of a PostgreSQL database. Cloning is cheap; a clone shares the pool.
    ///
    /// A claim keeps one connection of the pool until it is settled or dropped, and never needs a second. Give the
    /// relay a pool of its own, of its concurrency and two more; with fewer it is correct, and slower.
    ///
    /// `diesel-async` gives every statement a name. Behind a transaction pooler that works where the pooler keeps track of
    /// these names (PgBouncer from 1.21 on, with `max_prepared_statements` above 0); else connect directly.
    ///
    /// # Cancellation
    /// An operation whose future is dropped, or that overruns its request's timeout, closes its connection: the pool
    /// opens another when it needs one. A statement that runs at that moment ends on the server within about a
    /// second (PostgreSQL 14 on Linux), else at its own end, and at the latest after the request's timeout if it
    /// waits for a lock; then the tenant is free.
    OnPool
}

impl PostgresStore {
    /// The table that is described, through this pool: one of bb8, of deadpool, or a [`Pool`] by way of an adapter.
    ///
    /// # Errors
    /// [`InvalidTable`] if PostgreSQL cannot hold such a table.
    pub fn new(pool: impl Into<Pool<AsyncPgConnection>>, table: OutboxTable) -> Result<Self, InvalidTable> {
        Ok(Self(postgres::PostgresStore::new(OnPool(pool.into()), table)?))
    }

    /// The pool.
    pub fn pool(&self) -> &Pool<AsyncPgConnection> {
        &self.0.driver().0
    }
}
