//! The connection that a statement of the store runs on.

use sqlx::SqliteConnection;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{Sqlite, SqlitePool};
use tokio::runtime::Handle;

use crate::runtime::runtime;

/// A pooled connection that finds its way back from any thread, whenever it is dropped.
///
/// It needs no closing after a cancelled future: every statement of the store is one statement that commits
/// by itself, the driver's thread ends or resets it, and the pool takes the connection back only after that
/// thread answered. Closing it would lose the database, if that is in memory.
#[derive(Debug)]
pub(super) struct Lent {
    connection: Option<PoolConnection<Sqlite>>,
    runtime: Handle,
}

impl Lent {
    /// Takes one from the pool.
    ///
    /// # Cancellation safety
    /// Nothing is taken if the future is dropped.
    pub(super) async fn from(pool: &SqlitePool) -> sqlx::Result<Self> {
        let runtime = runtime()?;
        let connection = pool.acquire().await?;
        Ok(Self { connection: Some(connection), runtime })
    }

    /// The connection.
    pub(super) fn get(&mut self) -> sqlx::Result<&mut SqliteConnection> {
        self.connection.as_deref_mut().ok_or(sqlx::Error::WorkerCrashed)
    }

    /// Takes the connection out, to hand it to another thread.
    pub(super) fn take(&mut self) -> Self {
        Self { connection: self.connection.take(), runtime: self.runtime.clone() }
    }

    /// The runtime that the connection was taken on.
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.clone()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Going back to the pool is a task, which needs a runtime to be on.
        let _entered = self.runtime.enter();
        drop(self.connection.take());
    }
}
