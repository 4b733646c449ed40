//! The store under test, on bb8.
// It stands for a module of another crate's tests.
#![allow(clippy::needless_pass_by_value, clippy::unused_async, unreachable_pub)]

use std::pin::Pin;
use std::time::Duration;

use diesel::sql_types::Text;
use diesel_async::pooled_connection::bb8;
use diesel_async::{AnsiTransactionManager, AsyncMysqlConnection, TransactionManager as _};
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
        let second = Duration::from_secs(1);
        let pool = bb8::Pool::builder().max_size(size).idle_timeout(second).reaper_rate(second);
        Self(pool.build_unchecked(manager(&options, begin)))
    }

    pub fn that_retires(options: MySqlConnectOptions, size: u32, after: Duration) -> Self {
        let pool = bb8::Pool::builder().max_size(size).max_lifetime(after);
        let pool = pool.idle_timeout(after / 2).reaper_rate(after / 2);
        Self(pool.build_unchecked(manager(&options, "")))
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
            // bb8 closes what comes back inside of a transaction.
            drop(connection);
        }
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

    pub fn max_size(&self) -> u32 {
        self.0.config().max_size
    }

    /// It is closed when nobody has it any more.
    pub async fn close(&self) {}
}

/// A pool closes what it has open when nobody has it any more.
pub async fn close(store: MySqlStore) {
    drop(store);
}
