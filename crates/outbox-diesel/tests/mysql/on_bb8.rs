//! On bb8.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::pooled_connection::bb8;
use diesel_async::{AnsiTransactionManager, AsyncMysqlConnection, TransactionManager as _};
use outbox_core::{NewMessage, Settling, async_trait};
use outbox_diesel::OutboxTable;
use outbox_diesel::mysql::MySqlTable;
use outbox_suite::server::{Cut, Open, Pool, ServerDriver};
use outbox_suite::{AnyStore, mysql_laws, mysql_suite};
use sqlx::mysql::MySqlConnectOptions;

use crate::connect::{self, manager, store_on};

mysql_suite!(OnBb8);

mysql_laws!(marking, OnBb8, "mysql on diesel and bb8", store => store);
mysql_laws!(deleting, OnBb8, "mysql on diesel and bb8, deleting", store => store.with_settling(Settling::Delete), "DELETE");

#[derive(Default)]
pub(crate) struct OnBb8;

impl ServerDriver<MySqlConnectOptions> for OnBb8 {
    fn open(&self, open: Open<MySqlConnectOptions>) -> Arc<dyn Pool> {
        // A server takes some 150 connections, and a random story opens a pool for each of its replicas.
        let second = Duration::from_secs(1);
        let pool = bb8::Pool::builder().max_size(open.size);
        let pool = match open.retires {
            Some(after) => pool.max_lifetime(after).idle_timeout(after / 2).reaper_rate(after / 2),
            None if open.keeps_one => pool.min_idle(1),
            None => pool.idle_timeout(second).reaper_rate(second),
        };
        Arc::new(Pooled(pool.build_unchecked(manager(&open.options, open.begin))))
    }
}

struct Pooled(bb8::Pool<AsyncMysqlConnection>);

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
            // bb8 closes what comes back inside of a transaction.
            drop(connection);
        }
    }

    async fn pairs(&self, question: &str) -> Vec<(String, String)> {
        connect::pairs(question, &mut self.0.get().await.unwrap()).await
    }

    async fn lend(&self) -> Result<Box<dyn Any + Send>, String> {
        let lent = self.0.get_owned().await.map_err(|error| error.to_string())?;
        Ok(Box::new(lent))
    }

    fn size(&self) -> u32 {
        self.0.state().connections
    }

    fn max_size(&self) -> u32 {
        self.0.config().max_size
    }

    /// It is closed when nobody has it any more.
    async fn close(&self) {}
}
