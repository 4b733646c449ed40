//! The connection that an operation of the store runs on, and what becomes of it when the operation does not
//! come to its end.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection, Database, Pool};
use tokio::runtime::Handle;

use crate::runtime::runtime;

/// How long the pool is waited for before the server itself is asked what is the matter.
const PATIENCE: Duration = Duration::from_secs(1);

/// A pooled connection that is closed, unless it is given back.
///
/// It is armed before the first statement is sent. A future that is dropped, a panic or a deadline drops it,
/// and then the connection leaves the pool and its socket is closed: the server rolls back, and no open
/// transaction comes to whoever takes the next connection from the pool. It does not use
/// `sqlx::Transaction`, which forgets a `BEGIN` that was cancelled mid-flight; and a connection to MySQL whose
/// query was cancelled may never come back to the pool by itself.
#[derive(Debug)]
pub(crate) struct ArmedConnection<DB: Database> {
    connection: Option<PoolConnection<DB>>,
    runtime: Handle,
}

impl<DB: Database> ArmedConnection<DB> {
    /// Takes a connection from the pool.
    ///
    /// A pool keeps trying in silence while nobody listens or the server has no connection left, and says in the
    /// end that it timed out. So, if it takes a while, the server is asked for a connection beside it: an error
    /// that says what is the matter is the answer.
    ///
    /// # Cancellation
    /// Nothing is taken if the future is dropped.
    pub(crate) async fn acquire(pool: &Pool<DB>) -> sqlx::Result<Self> {
        let runtime = runtime()?;
        let connection = tokio::select! {
            biased;
            connection = pool.acquire() => connection?,
            refusal = refusal(pool) => return Err(refusal),
        };
        Ok(Self { connection: Some(connection), runtime })
    }

    /// The connection.
    pub(crate) fn get(&mut self) -> sqlx::Result<&mut DB::Connection> {
        self.connection.as_deref_mut().ok_or(sqlx::Error::WorkerCrashed)
    }

    /// Gives the connection back to the pool. To be called when no transaction is open on it.
    pub(crate) fn give_back(mut self) {
        let _entered = self.runtime.enter();
        drop(self.connection.take());
    }
}

impl<DB: Database> Drop for ArmedConnection<DB> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // A pool that keeps a number of connections spawns a task here, on whichever thread this is.
            let _entered = self.runtime.enter();
            drop(connection.detach());
        }
    }
}

/// Why the server gives no connection. It does not end if it gives one: then the pool is busy.
pub(crate) async fn refusal<DB: Database>(pool: &Pool<DB>) -> sqlx::Error {
    tokio::time::sleep(PATIENCE).await;
    match DB::Connection::connect_with(&pool.connect_options()).await {
        Err(error) => error,
        Ok(connection) => {
            // It answered, and that is all that was asked; how the goodbye goes does not matter.
            let _ = connection.close().await;
            std::future::pending().await
        }
    }
}
