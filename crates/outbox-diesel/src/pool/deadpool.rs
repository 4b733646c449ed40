//! deadpool.

use std::num::NonZeroU32;

use ::deadpool::managed::{Manager, Object, PoolError as DeadpoolError};
use diesel_async::pooled_connection::{self, AsyncDieselConnectionManager};
use outbox_core::async_trait;

use super::{Pool, PoolAdapter, PoolError, PooledConnection};

type DeadpoolPool<C> = pooled_connection::deadpool::Pool<C>;

#[async_trait]
impl<C> PoolAdapter<C> for DeadpoolPool<C>
where
    C: Send + 'static,
    AsyncDieselConnectionManager<C>: Manager<Type = C, Error = pooled_connection::PoolError>,
{
    async fn get(&self) -> Result<Box<dyn PooledConnection<C>>, PoolError> {
        match DeadpoolPool::<C>::get(self).await {
            Ok(lent) => Ok(Box::new(lent)),
            Err(DeadpoolError::Timeout(_)) => Err(PoolError::TimedOut),
            Err(DeadpoolError::Closed) => Err(PoolError::Closed),
            Err(DeadpoolError::Backend(error)) => Err(error.into()),
            Err(error) => Err(PoolError::Other(Box::new(error))),
        }
    }

    async fn connect(&self) -> Result<C, PoolError> {
        Ok(self.manager().create().await?)
    }

    fn max_size(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(u32::try_from(self.status().max_size).unwrap_or(u32::MAX))
    }
}

impl<C> PooledConnection<C> for Object<AsyncDieselConnectionManager<C>>
where
    C: Send + 'static,
    AsyncDieselConnectionManager<C>: Manager<Type = C>,
{
    fn get(&mut self) -> &mut C {
        self
    }

    /// deadpool looks at a connection when it is next asked for one, not when it gets one back.
    fn close(self: Box<Self>) {
        drop(Object::take(*self));
    }
}

impl<C> From<DeadpoolPool<C>> for Pool<C>
where
    C: Send + 'static,
    AsyncDieselConnectionManager<C>: Manager<Type = C, Error = pooled_connection::PoolError>,
{
    fn from(pool: DeadpoolPool<C>) -> Self {
        Self::new(pool)
    }
}
