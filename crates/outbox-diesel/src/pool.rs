//! Where a store takes its connections from.

#[cfg(feature = "bb8")]
mod bb8;
#[cfg(feature = "deadpool")]
mod deadpool;

use std::any::Any;
use std::error::Error;
use std::fmt::{self, Debug};
use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::async_trait;

/// A pool of connections of `diesel-async`: made [from](From) one of bb8 or deadpool (features `bb8`, `deadpool`), or
/// from [any other](Self::new). Cloning is cheap; a clone is the same pool.
pub struct Pool<C>(Arc<dyn PoolAdapter<C>>);

impl<C: 'static> Pool<C> {
    /// A pool by way of its adapter.
    pub fn new(adapter: impl PoolAdapter<C>) -> Self {
        Self(Arc::new(adapter))
    }

    /// The adapter.
    pub fn adapter(&self) -> &dyn PoolAdapter<C> {
        &*self.0
    }

    /// The pool that it was made from, if it is one of this type.
    pub fn downcast_ref<P: PoolAdapter<C>>(&self) -> Option<&P> {
        let adapter: &dyn Any = self.adapter();
        adapter.downcast_ref()
    }
}

impl<C> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: 'static> Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("max_size", &self.0.max_size()).finish_non_exhaustive()
    }
}

/// What a store needs of a pool.
#[async_trait]
pub trait PoolAdapter<C>: Any + Send + Sync {
    /// Takes a connection from the pool.
    ///
    /// # Errors
    /// [`PoolError`], if there is none to be had.
    ///
    /// # Cancellation
    /// A future that is dropped must take nothing.
    async fn get(&self) -> Result<Box<dyn PooledConnection<C>>, PoolError>;

    /// Opens a connection beside the pool, as the pool opens its own: a store asks so what is the matter when the
    /// pool gives none.
    ///
    /// # Errors
    /// [`PoolError`], if the server gives none.
    async fn connect(&self) -> Result<C, PoolError>;

    /// The most connections that the pool has at once.
    fn max_size(&self) -> Option<NonZeroU32>;
}

/// A connection that a pool has lent. Its drop gives it back.
pub trait PooledConnection<C>: Send {
    /// The connection.
    fn get(&mut self) -> &mut C;

    /// Takes the connection out of the pool for good and closes it. Must work on any thread, and must not wait: a
    /// transaction may be open on it, and a statement running.
    fn close(self: Box<Self>);
}

/// A pool gave no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// None came free in the time that the pool waits.
    #[error("no connection of the pool was free in time")]
    TimedOut,
    /// The pool is closed.
    #[error("the pool is closed")]
    Closed,
    /// No connection could be made.
    #[error("no connection could be made")]
    Connection(#[source] diesel::ConnectionError),
    /// A connection did not pass its check.
    #[error("a connection of the pool did not answer")]
    Query(#[source] diesel::result::Error),
    /// Something else: the pool was put together in a way that cannot work, for example.
    #[error("the pool gave no connection")]
    Other(#[source] Box<dyn Error + Send + Sync>),
}

#[cfg(any(feature = "bb8", feature = "deadpool"))]
impl From<diesel_async::pooled_connection::PoolError> for PoolError {
    fn from(error: diesel_async::pooled_connection::PoolError) -> Self {
        use diesel_async::pooled_connection::PoolError::{ConnectionError, QueryError};
        match error {
            ConnectionError(error) => Self::Connection(error),
            QueryError(error) => Self::Query(error),
        }
    }
}
