//! The store under test, on deadpool.
// It stands for a module of another crate's tests.
#![allow(clippy::needless_pass_by_value, clippy::unused_async, unreachable_pub)]

use diesel::sql_types::Text;
use diesel_async::AsyncMysqlConnection;
use diesel_async::pooled_connection::deadpool;
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

    pub async fn close(&self) {
        self.0.close();
    }
}

/// A pool closes what it has open when nobody has it any more.
pub async fn close(store: MySqlStore) {
    drop(store);
}
