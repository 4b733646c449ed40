//! On deadpool.

use std::any::Any;
use std::sync::Arc;

use diesel_async::pooled_connection::deadpool;
use diesel_async::{AnsiTransactionManager, AsyncMysqlConnection, TransactionManager as _};
use outbox_core::{NewMessage, async_trait};
use outbox_diesel::OutboxTable;
use outbox_diesel::mysql::MySqlTable;
use outbox_suite::mysql::Driver;
use outbox_suite::server::{Cut, Open, Pool, ServerDriver};
use outbox_suite::{AnyStore, mysql_laws, mysql_suite};
use sqlx::mysql::MySqlConnectOptions;

use crate::connect::{self, manager, store_on};

mysql_suite!(OnDeadpool);

mysql_laws!(marking, OnDeadpool, "mysql on diesel and deadpool", store => store);

#[derive(Default)]
pub(crate) struct OnDeadpool;

/// For the tests that are of Diesel, and of no pool.
pub(crate) fn driver() -> Driver {
    Driver::of::<OnDeadpool>(module_path!())
}

impl ServerDriver<MySqlConnectOptions> for OnDeadpool {
    /// deadpool keeps no number of connections, and retires what is old when it is asked to.
    fn open(&self, open: Open<MySqlConnectOptions>) -> Arc<dyn Pool> {
        let size = usize::try_from(open.size).unwrap();
        let manager = manager(&open.options, open.begin);
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
}

struct Pooled(deadpool::Pool<AsyncMysqlConnection>);

#[async_trait]
impl Pool for Pooled {
    fn store(&self, table: &OutboxTable) -> AnyStore {
        store_on(self.0.clone(), table)
    }

    async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = MySqlTable::new(table.clone()).unwrap();
        table.append(message).execute_async(&mut *self.0.get().await.unwrap()).await.unwrap().get()
    }

    async fn append_in_transaction(&self, table: &OutboxTable, message: &NewMessage, cut: Cut) {
        let table = MySqlTable::new(table.clone()).unwrap();
        let mut connection = self.0.get().await.unwrap();
        AnsiTransactionManager::begin_transaction(&mut *connection).await.unwrap();
        if let Some(appended) = cut.run(table.append(message).execute_async(&mut *connection)).await {
            appended.unwrap();
            AnsiTransactionManager::commit_transaction(&mut *connection).await.unwrap();
        } else {
            // What is cut is left to the end of its connection.
            drop(deadpool::Object::take(connection));
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
