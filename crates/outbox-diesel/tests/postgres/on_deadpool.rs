//! On deadpool.

use std::any::Any;
use std::sync::Arc;

use diesel_async::pooled_connection::deadpool;
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, TransactionManager as _};
use outbox_core::{NewMessage, async_trait};
use outbox_diesel::OutboxTable;
use outbox_diesel::postgres::{Durability, PostgresTable};
use outbox_suite::postgres::{Driver, eager};
use outbox_suite::server::{Cut, Open, Pool, ServerDriver};
use outbox_suite::{AnyStore, postgres_laws, postgres_suite};
use sqlx::postgres::PgConnectOptions;

use crate::connect::{self, manager, store_on};

postgres_suite!(OnDeadpool);

postgres_laws!(conformance, OnDeadpool, "postgres on diesel and deadpool", store => store);
postgres_laws!(relaxed, OnDeadpool, "postgres on diesel and deadpool, relaxed", store =>
    store.with_durability(Durability::Relaxed));
postgres_laws!(with_watermark, OnDeadpool, "postgres on diesel and deadpool, with a watermark", store =>
    store.with_watermark(eager()));

#[derive(Default)]
pub(crate) struct OnDeadpool;

/// For the tests that are of Diesel, and of no pool.
pub(crate) fn driver() -> Driver {
    Driver::of::<OnDeadpool>(module_path!())
}

impl ServerDriver<PgConnectOptions> for OnDeadpool {
    /// deadpool keeps no number of connections, and retires what is old when it is asked to.
    fn open(&self, open: Open<PgConnectOptions>) -> Arc<dyn Pool> {
        let size = usize::try_from(open.size).unwrap();
        let manager = manager(&open.options);
        let pool = deadpool::Pool::builder(manager).max_size(size).build().unwrap();
        if let Some(after) = open.retires {
            let retiring = pool.weak();
            tokio::spawn(async move {
                while let Some(pool) = retiring.upgrade() {
                    pool.retain(|_, metrics| metrics.age() < after);
                    drop(pool);
                    tokio::time::sleep(after / 2).await;
                }
            });
        }
        Arc::new(Pooled(pool))
    }

    fn unreachable(&self) -> Option<&'static str> {
        Some(connect::UNREACHABLE)
    }
}

struct Pooled(deadpool::Pool<AsyncPgConnection>);

#[async_trait]
impl Pool for Pooled {
    fn store(&self, table: &OutboxTable) -> AnyStore {
        store_on(self.0.clone(), table)
    }

    async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = PostgresTable::new(table.clone()).unwrap();
        table.append(message).execute_async(&mut *self.0.get().await.unwrap()).await.unwrap().get()
    }

    async fn append_in_transaction(&self, table: &OutboxTable, message: &NewMessage, cut: Cut) {
        let table = PostgresTable::new(table.clone()).unwrap();
        let mut connection = self.0.get().await.unwrap();
        AnsiTransactionManager::begin_transaction(&mut *connection).await.unwrap();
        if let Some(appended) = cut.run(table.append(message).execute_async(&mut *connection)).await {
            appended.unwrap();
            AnsiTransactionManager::commit_transaction(&mut *connection).await.unwrap();
        } else {
            AnsiTransactionManager::rollback_transaction(&mut *connection).await.unwrap();
        }
    }

    async fn pairs(&self, question: &str) -> Vec<(String, String)> {
        connect::pairs(question, &mut self.0.get().await.unwrap()).await
    }

    async fn lend(&self) -> Result<Box<dyn Any + Send>, String> {
        let lent = self.0.get().await.map_err(|error| error.to_string())?;
        Ok(Box::new(lent))
    }

    fn size(&self) -> u32 {
        u32::try_from(self.0.status().size).unwrap()
    }

    fn max_size(&self) -> u32 {
        u32::try_from(self.0.status().max_size).unwrap()
    }

    async fn close(&self) {
        self.0.close();
    }
}
