//! The connection that an operation of a store runs on, and what becomes of it when the operation does not come to its
//! end.

use std::fmt::{self, Debug};
use std::time::Duration;

use diesel::ConnectionError;
use diesel::result::Error;
use outbox_sql::Meaning;
use outbox_sql::meaning::{POOL_IS_BUSY, POOL_IS_CLOSED};
use tokio::runtime::Handle;

use crate::pool::{Pool, PoolError, PooledConnection};

/// How long the pool is waited for before the server itself is asked what is the matter.
const PATIENCE: Duration = Duration::from_secs(1);

/// A pooled connection that is closed, unless it is given back.
///
/// It is armed before the first statement is sent. A future that is dropped, a panic or a deadline drops it, and then
/// the connection leaves the pool and its socket is closed: the server rolls back, and no open transaction comes to
/// whoever takes the next connection from the pool. It does not use Diesel's own transactions, which a pool may keep
/// open when their future is dropped.
pub(crate) struct ArmedConnection<C> {
    connection: Option<Box<dyn PooledConnection<C>>>,
    runtime: Handle,
}

/// The connection is gone. It cannot be, while an operation runs.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the connection was given away")]
pub(crate) struct Gone;

/// What an operation of a store can fail with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Database(#[from] Error),
    #[error(transparent)]
    Gone(#[from] Gone),
}

impl Failure {
    /// What it means: `of` says so of a database's error, and `no_connection` that there is no connection.
    pub(crate) fn meaning(&self, of: impl FnOnce(&Error) -> Meaning, no_connection: &'static str) -> Meaning {
        match self {
            Self::Database(error)
            | Self::Pool(
                PoolError::Query(error)
                | PoolError::Connection(ConnectionError::CouldntSetupConfiguration(error)),
            ) => of(error),
            Self::Pool(PoolError::Connection(
                ConnectionError::InvalidConnectionUrl(_) | ConnectionError::InvalidCString(_),
            )) => Meaning::stays("the connection's configuration is wrong"),
            Self::Pool(PoolError::TimedOut) => Meaning::may_go_away(POOL_IS_BUSY),
            Self::Pool(PoolError::Closed) => Meaning::stays(POOL_IS_CLOSED),
            Self::Pool(PoolError::Other(_)) => Meaning::stays("the pool gave no connection"),
            Self::Pool(PoolError::Connection(_)) | Self::Gone(_) => Meaning::may_go_away(no_connection),
        }
    }
}

impl<C: Send + 'static> ArmedConnection<C> {
    /// Takes a connection from the pool.
    ///
    /// A pool may keep trying in silence while nobody listens or the server has no connection left, and says in the
    /// end that it timed out. So, if it takes a while, the server is asked for a connection beside it: an error that
    /// says what is the matter is the answer.
    ///
    /// # Cancellation
    /// Nothing is taken if the future is dropped.
    pub(crate) async fn acquire(pool: &Pool<C>) -> Result<Self, PoolError> {
        let runtime = Handle::try_current().map_err(|error| PoolError::Other(Box::new(error)))?;
        let connection = tokio::select! {
            biased;
            connection = pool.adapter().get() => connection?,
            refusal = refusal(pool) => return Err(refusal),
        };
        Ok(Self { connection: Some(connection), runtime })
    }

    /// The connection.
    pub(crate) fn get(&mut self) -> Result<&mut C, Gone> {
        self.connection.as_deref_mut().map(PooledConnection::get).ok_or(Gone)
    }

    /// Gives the connection back to the pool. To be called when no transaction is open on it.
    pub(crate) fn give_back(mut self) {
        let _entered = self.runtime.enter();
        drop(self.connection.take());
    }
}

impl<C> Drop for ArmedConnection<C> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // A pool that keeps a number of connections spawns a task here, on whichever thread this is.
            let _entered = self.runtime.enter();
            connection.close();
        }
    }
}

impl<C> Debug for ArmedConnection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArmedConnection").field("armed", &self.connection.is_some()).finish_non_exhaustive()
    }
}

/// Why the server gives no connection. It does not end if it gives one: then the pool is busy.
async fn refusal<C: Send + 'static>(pool: &Pool<C>) -> PoolError {
    tokio::time::sleep(PATIENCE).await;
    match pool.adapter().connect().await {
        Err(error) => error,
        Ok(connection) => {
            // It answered, and that is all that was asked.
            drop(connection);
            std::future::pending().await
        }
    }
}
