//! The store: an outbox table, seen by one replica.

use outbox_sql::{InvalidTable, OutboxTable, postgres};
use sqlx::PgPool;

use super::driver::OnPool;

outbox_sql::postgres_store! {
    /// An outbox table of a PostgreSQL database. Cloning is cheap; a clone shares the pool.
    ///
    /// A claim keeps one connection of the pool until it is settled or dropped, and never needs a second. Give the
    /// relay a pool of its own, of its concurrency and two more; with fewer it is correct, and slower.
    ///
    /// # Cancellation
    /// An operation whose future is dropped, or that overruns its request's timeout, closes its connection: the pool
    /// opens another when it needs one. A statement that runs at that moment ends on the server within about a
    /// second (PostgreSQL 14 on Linux), else at its own end, and at the latest after the request's timeout if it
    /// waits for a lock; then the tenant is free.
    OnPool
}

impl PostgresStore {
    /// The table that is described, through this pool.
    ///
    /// # Errors
    /// [`InvalidTable`] if PostgreSQL cannot hold such a table.
    pub fn new(pool: PgPool, table: OutboxTable) -> Result<Self, InvalidTable> {
        Ok(Self(postgres::PostgresStore::new(OnPool { pool, named: true }, table)?))
    }

    /// Prepares no statement under a name, for a pool that connects through a transaction pooler (PgBouncer's
    /// `pool_mode = transaction`), which may bring the next transaction to another server session. Probe and
    /// pending then take three round trips instead of one.
    pub fn without_named_statements(mut self) -> Self {
        self.0.driver_mut().named = false;
        self
    }

    /// The pool.
    pub fn pool(&self) -> &PgPool {
        &self.0.driver().pool
    }
}
