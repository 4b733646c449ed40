//! The application's pools of `diesel-async`.
//!
//! A future of `diesel-async`'s SQLite connection that is dropped before its statement has ended blocks the
//! thread, and panics on a current-thread runtime. So none is dropped: they run in tasks of a runtime of our own
//! that never ends, and whoever asked waits for the answer, or does not.

use std::io;
use std::ops::DerefMut;
use std::sync::OnceLock;

use diesel::SqliteConnection;
use diesel_async::pooled_connection::PoolError;
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::connection::SqliteConnections;
use super::error::Failure;

type Wrapper = SyncConnectionWrapper<SqliteConnection>;

#[derive(Clone)]
pub(super) enum Pool {
    #[cfg(feature = "bb8")]
    Bb8(diesel_async::pooled_connection::bb8::Pool<Wrapper>),
    #[cfg(feature = "deadpool")]
    Deadpool(diesel_async::pooled_connection::deadpool::Pool<Wrapper>),
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            #[cfg(feature = "bb8")]
            Self::Bb8(_) => "bb8",
            #[cfg(feature = "deadpool")]
            Self::Deadpool(_) => "deadpool",
        })
    }
}

#[cfg(feature = "bb8")]
impl From<diesel_async::pooled_connection::bb8::Pool<Wrapper>> for SqliteConnections {
    fn from(pool: diesel_async::pooled_connection::bb8::Pool<Wrapper>) -> Self {
        Self::pooled(Pool::Bb8(pool))
    }
}

#[cfg(feature = "deadpool")]
impl From<diesel_async::pooled_connection::deadpool::Pool<Wrapper>> for SqliteConnections {
    fn from(pool: diesel_async::pooled_connection::deadpool::Pool<Wrapper>) -> Self {
        Self::pooled(Pool::Deadpool(pool))
    }
}

impl Pool {
    /// Runs a job on a connection of the pool.
    ///
    /// # Cancellation safety
    /// As [`SqliteConnections::run`].
    pub(super) async fn run<T, J>(&self, job: J) -> Result<T, Failure>
    where
        T: Send + 'static,
        J: FnOnce(&mut SqliteConnection) -> Result<T, Failure> + Send + 'static,
    {
        match self.clone() {
            #[cfg(feature = "bb8")]
            Self::Bb8(pool) => run(async move { pool.get_owned().await.map_err(of_bb8) }, job).await,
            #[cfg(feature = "deadpool")]
            Self::Deadpool(pool) => run(async move { pool.get().await.map_err(of_deadpool) }, job).await,
        }
    }
}

async fn run<T, J, C>(
    connection: impl Future<Output = Result<C, Failure>> + Send + 'static,
    job: J,
) -> Result<T, Failure>
where
    T: Send + 'static,
    J: FnOnce(&mut SqliteConnection) -> Result<T, Failure> + Send + 'static,
    C: DerefMut<Target = Wrapper> + Send + 'static,
{
    let (mut answer, answered) = oneshot::channel();
    runtime()?.spawn(async move {
        let connection = tokio::select! {
            biased;
            // Nobody waits any more. What of a new connection is being made ends first: this runtime may block.
            () = answer.closed() => return,
            connection = connection => connection,
        };
        let outcome = match connection {
            // `spawn_blocking` has no error of its own but that the job did not come to its end.
            Ok(mut connection) => connection.spawn_blocking(move |connection| Ok(job(connection))).await,
            Err(failure) => Ok(Err(failure)),
        };
        // Nobody waits any more: dropped here, with whatever the answer holds.
        drop(answer.send(outcome.unwrap_or(Err(Failure::Ended))));
    });
    answered.await.unwrap_or(Err(Failure::Ended))
}

/// One for the process, with one thread; never shut down, since what it runs must never be dropped.
fn runtime() -> Result<&'static Runtime, Failure> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(1).thread_name("outbox-sqlite").enable_time().build()
    });
    runtime.as_ref().map_err(|error| Failure::NoConnection(format!("no thread for the pool: {error}")))
}

fn of_pool(error: PoolError) -> Failure {
    match error {
        PoolError::ConnectionError(error) => Failure::Connect(error),
        PoolError::QueryError(error) => Failure::Query(error),
    }
}

#[cfg(feature = "bb8")]
fn of_bb8(error: diesel_async::pooled_connection::bb8::RunError) -> Failure {
    use diesel_async::pooled_connection::bb8::RunError;
    match error {
        RunError::User(error) => of_pool(error),
        error @ RunError::TimedOut => Failure::NoConnection(error.to_string()),
    }
}

#[cfg(feature = "deadpool")]
fn of_deadpool(error: diesel_async::pooled_connection::deadpool::PoolError) -> Failure {
    use diesel_async::pooled_connection::deadpool::PoolError;
    match error {
        PoolError::Backend(error) => of_pool(error),
        PoolError::Closed => Failure::PoolClosed,
        error => Failure::NoConnection(error.to_string()),
    }
}
