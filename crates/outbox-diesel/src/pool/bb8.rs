//! bb8.

use std::num::NonZeroU32;

use ::bb8::{ManageConnection, PooledConnection as Lent, RunError};
use diesel_async::pooled_connection::{self, AsyncDieselConnectionManager};
use diesel_async::{AsyncConnection, TransactionManager};
use outbox_core::async_trait;

use super::{Pool, PoolAdapter, PoolError, PooledConnection};

type Bb8Pool<C> = pooled_connection::bb8::Pool<C>;

#[async_trait]
impl<C> PoolAdapter<C> for Bb8Pool<C>
where
    C: AsyncConnection + 'static,
    AsyncDieselConnectionManager<C>: ManageConnection<Connection = C, Error = pooled_connection::PoolError>,
{
    async fn get(&self) -> Result<Box<dyn PooledConnection<C>>, PoolError> {
        match self.get_owned().await {
            Ok(lent) => Ok(Box::new(lent)),
            Err(RunError::User(error)) => Err(error.into()),
            Err(RunError::TimedOut) => Err(PoolError::TimedOut),
        }
    }

    async fn connect(&self) -> Result<C, PoolError> {
        Ok(self.dedicated_connection().await?)
    }

    fn max_size(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.config().max_size)
    }
}

impl<C> PooledConnection<C> for Lent<'static, AsyncDieselConnectionManager<C>>
where
    C: AsyncConnection + 'static,
    AsyncDieselConnectionManager<C>: ManageConnection<Connection = C>,
{
    fn get(&mut self) -> &mut C {
        self
    }

    /// bb8 drops a connection that it gets back broken.
    fn close(mut self: Box<Self>) {
        C::TransactionManager::transaction_manager_status_mut(&mut **self).set_in_error();
    }
}

impl<C> From<Bb8Pool<C>> for Pool<C>
where
    C: AsyncConnection + 'static,
    AsyncDieselConnectionManager<C>: ManageConnection<Connection = C, Error = pooled_connection::PoolError>,
{
    fn from(pool: Bb8Pool<C>) -> Self {
        Self::new(pool)
    }
}
