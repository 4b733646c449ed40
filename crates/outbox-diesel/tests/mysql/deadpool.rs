//! The store under test, on deadpool.
// It stands for a module of another crate's tests.
#![allow(clippy::needless_pass_by_value, clippy::unused_async, unreachable_pub)]

use std::pin::Pin;
use std::time::Duration;

use diesel::sql_types::Text;
use diesel_async::pooled_connection::deadpool;
use diesel_async::{AnsiTransactionManager, AsyncMysqlConnection, TransactionManager as _};
use outbox_core::NewMessage;
use outbox_diesel::OutboxTable;
pub use outbox_diesel::mysql::MySqlStore;
use outbox_diesel::mysql::MySqlTable;
use sqlx::mysql::MySqlConnectOptions;

use crate::connect::manager;

type Pool = deadpool::Pool<AsyncMysqlConnection>;

/// A store's pool.
#[derive(Clone)]
pub struct StorePool(Pool);

impl StorePool {
    pub fn new(options: MySqlConnectOptions, size: u32) -> Self {
        Self::that_begins(options, size, "")
    }

    /// deadpool keeps no number of connections.
    pub fn that_keeps_one(options: MySqlConnectOptions, size: u32) -> Self {
        Self::new(options, size)
    }

    pub fn that_begins(options: MySqlConnectOptions, size: u32, begin: &'static str) -> Self {
        let size = usize::try_from(size).unwrap();
        Self(deadpool::Pool::builder(manager(&options, begin)).max_size(size).build().unwrap())
    }

    /// deadpool retires what is old when it is asked to.
    pub fn that_retires(options: MySqlConnectOptions, size: u32, after: Duration) -> Self {
        let pool = Self::new(options, size);
        let retiring = pool.0.weak();
        tokio::spawn(async move {
            while let Some(pool) = retiring.upgrade() {
                pool.retain(|_, metrics| metrics.age() < after);
                drop(pool);
                tokio::time::sleep(after / 2).await;
            }
        });
        pool
    }

    pub fn store(&self, table: &OutboxTable) -> MySqlStore {
        MySqlStore::new(self.0.clone(), table.clone()).unwrap()
    }

    pub fn of(store: &MySqlStore) -> Self {
        Self(store.pool().downcast_ref::<Pool>().unwrap().clone())
    }

    pub async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = MySqlTable::new(table.clone()).unwrap();
        table.append(message).execute_async(&mut *self.0.get().await.unwrap()).await.unwrap().get()
    }

    /// What is cut is left to the end of its connection.
    pub async fn append_in_transaction(
        &self,
        table: &OutboxTable,
        message: &NewMessage,
        cut: impl AsyncFnOnce(Pin<Box<dyn Future<Output = ()> + Send + '_>>) -> Option<()>,
    ) {
        let table = MySqlTable::new(table.clone()).unwrap();
        let mut connection = self.0.get().await.unwrap();
        AnsiTransactionManager::begin_transaction(&mut *connection).await.unwrap();
        let append = async {
            table.append(message).execute_async(&mut *connection).await.unwrap();
        };
        if cut(Box::pin(append)).await.is_some() {
            AnsiTransactionManager::commit_transaction(&mut *connection).await.unwrap();
        } else {
            drop(deadpool::Object::take(connection));
        }
    }

    pub async fn pairs(&self, question: &str) -> Vec<(String, String)> {
        let question = diesel::dsl::sql::<(Text, Text)>(question);
        diesel_async::RunQueryDsl::load(question, &mut *self.0.get().await.unwrap()).await.unwrap()
    }

    pub async fn lend(&self) -> Result<deadpool::Object<AsyncMysqlConnection>, deadpool::PoolError> {
        self.0.get().await
    }

    pub fn size(&self) -> u32 {
        u32::try_from(self.0.status().size).unwrap()
    }

    pub fn max_size(&self) -> u32 {
        u32::try_from(self.0.status().max_size).unwrap()
    }

    pub async fn close(&self) {
        self.0.close();
    }
}

/// A pool closes what it has open when nobody has it any more.
pub async fn close(store: MySqlStore) {
    drop(store);
}
