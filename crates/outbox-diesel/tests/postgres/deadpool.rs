//! The store under test, on deadpool.
// It stands for a module of another crate's tests.
#![allow(clippy::needless_pass_by_value, clippy::unused_async, unreachable_pub)]

use std::pin::Pin;
use std::time::Duration;

use diesel_async::pooled_connection::deadpool;
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, TransactionManager as _};
use outbox_core::NewMessage;
use outbox_diesel::OutboxTable;
pub use outbox_diesel::postgres::PostgresStore;
use outbox_diesel::postgres::PostgresTable;
use sqlx::postgres::PgConnectOptions;

use crate::connect::manager;

/// Diesel keeps the rest to itself.
pub const UNREACHABLE: &str = "error connecting to server";

/// A store's pool.
#[derive(Clone)]
pub struct StorePool(deadpool::Pool<AsyncPgConnection>);

impl StorePool {
    /// What can be chosen about a store, and changes what it sends.
    pub const VARIANTS: [fn(PostgresStore) -> PostgresStore; 1] = [|store| store];

    pub fn new(options: PgConnectOptions, size: u32) -> Self {
        let size = usize::try_from(size).unwrap();
        Self(deadpool::Pool::builder(manager(&options)).max_size(size).build().unwrap())
    }

    /// deadpool keeps no number of connections.
    pub fn that_keeps_one(options: PgConnectOptions, size: u32) -> Self {
        Self::new(options, size)
    }

    /// deadpool retires what is old when it is asked to.
    pub fn that_retires(options: PgConnectOptions, size: u32, after: Duration) -> Self {
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

    pub fn store(&self, table: &OutboxTable) -> PostgresStore {
        PostgresStore::new(self.0.clone(), table.clone()).unwrap()
    }

    pub fn of(store: &PostgresStore) -> Self {
        Self(store.pool().downcast_ref::<deadpool::Pool<AsyncPgConnection>>().unwrap().clone())
    }

    pub async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = PostgresTable::new(table.clone()).unwrap();
        table.append(message).execute_async(&mut *self.0.get().await.unwrap()).await.unwrap().get()
    }

    pub async fn append_in_transaction(
        &self,
        table: &OutboxTable,
        message: &NewMessage,
        cut: impl AsyncFnOnce(Pin<Box<dyn Future<Output = ()> + Send + '_>>) -> Option<()>,
    ) {
        let table = PostgresTable::new(table.clone()).unwrap();
        let mut connection = self.0.get().await.unwrap();
        AnsiTransactionManager::begin_transaction(&mut *connection).await.unwrap();
        let append = async {
            table.append(message).execute_async(&mut *connection).await.unwrap();
        };
        if cut(Box::pin(append)).await.is_some() {
            AnsiTransactionManager::commit_transaction(&mut *connection).await.unwrap();
        } else {
            AnsiTransactionManager::rollback_transaction(&mut *connection).await.unwrap();
        }
    }

    pub async fn show(&self, setting: &str) -> String {
        let show = diesel::dsl::sql::<diesel::sql_types::Text>(&format!("SHOW {setting}"));
        diesel_async::RunQueryDsl::get_result(show, &mut *self.0.get().await.unwrap()).await.unwrap()
    }

    pub async fn lend(&self) -> Result<deadpool::Object<AsyncPgConnection>, deadpool::PoolError> {
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
pub async fn close(store: PostgresStore) {
    drop(store);
}
