//! The connections that the statements of a store run on.

use std::fmt;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use diesel::connection::SimpleConnection;
use diesel::{Connection, QueryResult, SqliteConnection};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

use super::error::Failure;
#[cfg(any(feature = "bb8", feature = "deadpool"))]
use super::pool::Pool;

/// As many as can be of use: SQLite has one writer at a time.
const MAX_CONNECTIONS: NonZeroU32 = match NonZeroU32::new(4) {
    Some(max) => max,
    None => NonZeroU32::MIN,
};
const BUSY_TIMEOUT: &str = "PRAGMA busy_timeout = 5000";

type Setup = Arc<dyn Fn(&mut SqliteConnection) -> QueryResult<()> + Send + Sync>;

/// How a store opens connections of its own: Diesel's synchronous ones, used in tokio's threads for blocking
/// work, and kept open.
#[derive(Clone)]
pub struct SqliteConnector {
    url: String,
    max: NonZeroU32,
    setup: Option<Setup>,
}

impl SqliteConnector {
    /// Connections to a path or a URI (`file:…`), as [`SqliteConnection::establish`](Connection::establish) takes
    /// it. At most 4 are open at once, each with a busy timeout of 5 s. None is opened before it is needed.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), max: MAX_CONNECTIONS, setup: None }
    }

    /// Sets how many connections are open at once. Default: 4.
    pub fn with_max_connections(self, max: NonZeroU32) -> Self {
        Self { max, ..self }
    }

    /// Sets what is done with every new connection: a key, an `ATTACH`, another busy timeout. Default: nothing.
    /// It runs where blocking is allowed.
    pub fn with_setup(
        self,
        setup: impl Fn(&mut SqliteConnection) -> QueryResult<()> + Send + Sync + 'static,
    ) -> Self {
        Self { setup: Some(Arc::new(setup)), ..self }
    }

    fn connect(&self) -> Result<SqliteConnection, Failure> {
        let mut connection = SqliteConnection::establish(&self.url)?;
        connection.batch_execute(BUSY_TIMEOUT)?;
        if let Some(setup) = &self.setup {
            setup(&mut connection)?;
        }
        Ok(connection)
    }
}

/// Without the URL, which may have a key.
impl fmt::Debug for SqliteConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteConnector").field("max", &self.max).finish_non_exhaustive()
    }
}

/// What the statements of a store run on: connections of its own ([`SqliteConnector`]), or with the features
/// `bb8` and `deadpool` the application's pool of `diesel-async`. Clones share them.
///
/// A statement that has begun always comes to its end, whatever becomes of the future that waits for it: no
/// future of `diesel-async` is ever dropped, which would block or panic.
#[derive(Debug, Clone)]
pub struct SqliteConnections(Source);

#[derive(Debug, Clone)]
enum Source {
    Own(Arc<Own>),
    #[cfg(any(feature = "bb8", feature = "deadpool"))]
    Pool(Pool),
}

impl From<SqliteConnector> for SqliteConnections {
    fn from(connector: SqliteConnector) -> Self {
        let max = usize::try_from(connector.max.get()).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(max));
        Self(Source::Own(Arc::new(Own { connector, free, idle: Mutex::default() })))
    }
}

#[cfg(any(feature = "bb8", feature = "deadpool"))]
impl SqliteConnections {
    pub(super) fn pooled(pool: Pool) -> Self {
        Self(Source::Pool(pool))
    }
}

impl SqliteConnections {
    /// Runs a job on a connection, where it may block.
    ///
    /// # Cancellation safety
    /// A job that has begun comes to its end, and its answer is dropped there; one that has not does not begin.
    pub(super) async fn run<T, J>(&self, job: J) -> Result<T, Failure>
    where
        T: Send + 'static,
        J: FnOnce(&mut SqliteConnection) -> Result<T, Failure> + Send + 'static,
    {
        match &self.0 {
            Source::Own(own) => Arc::clone(own).run(job).await,
            #[cfg(any(feature = "bb8", feature = "deadpool"))]
            Source::Pool(pool) => pool.run(job).await,
        }
    }

    /// The name that connections open, if it is known.
    #[cfg_attr(
        not(any(feature = "bb8", feature = "deadpool")),
        expect(clippy::unnecessary_wraps, reason = "a pool does not tell it")
    )]
    pub(super) fn url(&self) -> Option<&str> {
        match &self.0 {
            Source::Own(own) => Some(&own.connector.url),
            #[cfg(any(feature = "bb8", feature = "deadpool"))]
            Source::Pool(_) => None,
        }
    }

    /// The address of what clones share, if there is never more than one connection.
    pub(super) fn only_connection(&self) -> Option<usize> {
        match &self.0 {
            Source::Own(own) => (own.connector.max == NonZeroU32::MIN).then(|| Arc::as_ptr(own).addr()),
            #[cfg(any(feature = "bb8", feature = "deadpool"))]
            Source::Pool(_) => None,
        }
    }
}

/// Connections of the store's own.
#[derive(Debug)]
struct Own {
    connector: SqliteConnector,
    free: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle(Vec<SqliteConnection>);

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} idle", self.0.len())
    }
}

impl Own {
    async fn run<T, J>(self: Arc<Self>, job: J) -> Result<T, Failure>
    where
        T: Send + 'static,
        J: FnOnce(&mut SqliteConnection) -> Result<T, Failure> + Send + 'static,
    {
        let turn = Arc::clone(&self.free).acquire_owned().await.map_err(|_| Failure::Ended)?;
        let begun = spawn_blocking(move || {
            let idle = self.idle().0.pop();
            let mut connection = match idle {
                Some(connection) => connection,
                None => self.connector.connect()?,
            };
            let outcome = job(&mut connection);
            // Not after a panic: it may have left the connection in any state.
            self.idle().0.push(connection);
            drop(turn);
            outcome
        });
        Begun(begun).await
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job in another thread; dropped, it does not begin if it has not yet.
struct Begun<T>(JoinHandle<Result<T, Failure>>);

impl<T> Future for Begun<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|ended| ended.unwrap_or(Err(Failure::Ended)))
    }
}

impl<T> Drop for Begun<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
