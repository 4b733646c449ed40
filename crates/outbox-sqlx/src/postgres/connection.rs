//! The connection that an operation of the store runs on, and what becomes of it when the operation does not
//! come to its end.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection, PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;

use crate::runtime::runtime;

/// How long the pool is waited for before the server itself is asked what is the matter.
const PATIENCE: Duration = Duration::from_secs(1);

/// A pooled connection that is closed, unless it is given back.
///
/// It is armed before the first statement is sent. A future that is dropped, a panic or a deadline drops it,
/// and then the connection leaves the pool and its socket is closed: the server rolls back, and no open
/// transaction comes to whoever takes the next connection from the pool. It does not use
/// `sqlx::Transaction`, which forgets a `BEGIN` that was cancelled mid-flight.
#[derive(Debug)]
pub(super) struct ArmedConnection {
    connection: Option<PoolConnection<Postgres>>,
    runtime: Handle,
}

impl ArmedConnection {
    /// Takes a connection from the pool.
    ///
    /// A pool keeps trying in silence while nobody listens or the server has no connection left, and says in the
    /// end that it timed out. So, if it takes a while, the server is asked for a connection beside it: an error
    /// that says what is the matter is the answer.
    ///
    /// # Cancellation
    /// Nothing is taken if the future is dropped.
    pub(super) async fn acquire(pool: &PgPool) -> sqlx::Result<Self> {
        let runtime = runtime()?;
        let connection = tokio::select! {
            biased;
            connection = pool.acquire() => connection?,
            refusal = refusal(pool) => return Err(refusal),
        };
        Ok(Self { connection: Some(connection), runtime })
    }

    /// The connection.
    pub(super) fn get(&mut self) -> sqlx::Result<&mut PgConnection> {
        self.connection.as_deref_mut().ok_or(sqlx::Error::WorkerCrashed)
    }

    /// Gives the connection back to the pool. To be called when no transaction is open on it.
    pub(super) fn give_back(mut self) {
        let _entered = self.runtime.enter();
        drop(self.connection.take());
    }
}

impl Drop for ArmedConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // A pool that keeps a number of connections spawns a task here, on whichever thread this is.
            let _entered = self.runtime.enter();
            drop(connection.detach());
        }
    }
}

/// Why the server gives no connection. It does not end if it gives one: then the pool is busy.
pub(super) async fn refusal(pool: &PgPool) -> sqlx::Error {
    tokio::time::sleep(PATIENCE).await;
    match PgConnection::connect_with(&pool.connect_options()).await {
        Err(error) => error,
        Ok(connection) => {
            // It answered, and that is all that was asked; how the goodbye goes does not matter.
            let _ = connection.close().await;
            std::future::pending().await
        }
    }
}
