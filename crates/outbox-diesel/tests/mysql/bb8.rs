//! The store under test, on bb8.
// It stands for a module of another crate's tests.
#![allow(clippy::needless_pass_by_value, clippy::unused_async, unreachable_pub)]

use diesel::sql_types::Text;
use diesel_async::AsyncMysqlConnection;
use diesel_async::pooled_connection::bb8;
use outbox_core::NewMessage;
use outbox_diesel::OutboxTable;
pub use outbox_diesel::mysql::MySqlStore;
use outbox_diesel::mysql::MySqlTable;
use sqlx::mysql::MySqlConnectOptions;

use crate::connect::manager;

type Pool = bb8::Pool<AsyncMysqlConnection>;

/// A store's pool.
#[derive(Clone)]
pub struct StorePool(Pool);

impl StorePool {
    pub fn new(options: MySqlConnectOptions, size: u32) -> Self {
        Self::that_begins(options, size, "")
    }

    pub fn that_keeps_one(options: MySqlConnectOptions, size: u32) -> Self {
        let pool = bb8::Pool::builder().min_idle(1).max_size(size);
        Self(pool.build_unchecked(manager(&options, "")))
    }

    pub fn that_begins(options: MySqlConnectOptions, size: u32, begin: &'static str) -> Self {
        // A server takes some 150 connections, and a random story opens a pool for each of its replicas.
        let second = std::time::Duration::from_secs(1);
        let pool = bb8::Pool::builder().max_size(size).idle_timeout(second).reaper_rate(second);
        Self(pool.build_unchecked(manager(&options, begin)))
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

    pub async fn lend(&self) -> Result<impl Sized + use<>, impl std::fmt::Debug + use<>> {
        self.0.get_owned().await
    }

    pub fn size(&self) -> u32 {
        self.0.state().connections
    }

    /// It is closed when nobody has it any more.
    pub async fn close(&self) {}
}

/// A pool closes what it has open when nobody has it any more.
pub async fn close(store: MySqlStore) {
    drop(store);
}
