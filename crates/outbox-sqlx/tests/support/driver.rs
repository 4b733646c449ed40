//! The store under test: what differs from ORM to ORM, and from pool to pool.
#![allow(dead_code, unreachable_pub)] // each test binary uses its part

use std::pin::Pin;
use std::time::Duration;

use outbox_core::NewMessage;
use outbox_sqlx::OutboxTable;
pub use outbox_sqlx::postgres::PostgresStore;
use outbox_sqlx::postgres::PostgresTable;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgPool, Postgres};

/// What the driver says where nobody listens.
pub const UNREACHABLE: &str = "refused";

/// A store's pool.
#[derive(Debug, Clone)]
pub struct StorePool(PgPool);

impl StorePool {
    /// What can be chosen about a store, and changes what it sends.
    pub const VARIANTS: [fn(PostgresStore) -> PostgresStore; 2] =
        [|store| store, PostgresStore::without_named_statements];

    /// A pool that connects when it is used.
    pub fn new(options: PgConnectOptions, size: u32) -> Self {
        Self(PgPoolOptions::new().max_connections(size).connect_lazy_with(options))
    }

    /// A pool that keeps a connection, and so may have something to do when it loses one.
    pub fn that_keeps_one(options: PgConnectOptions, size: u32) -> Self {
        Self(PgPoolOptions::new().min_connections(1).max_connections(size).connect_lazy_with(options))
    }

    /// A pool whose connections are old after this time.
    pub fn that_retires(options: PgConnectOptions, size: u32, after: Duration) -> Self {
        let pool = PgPoolOptions::new().max_connections(size).max_lifetime(after);
        Self(pool.idle_timeout(after / 2).connect_lazy_with(options))
    }

    pub fn store(&self, table: &OutboxTable) -> PostgresStore {
        PostgresStore::new(self.0.clone(), table.clone()).unwrap()
    }

    /// The pool of this store.
    pub fn of(store: &PostgresStore) -> Self {
        Self(store.pool().clone())
    }

    /// The application's own write on a connection of the pool, in no transaction.
    pub async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = PostgresTable::new(table.clone()).unwrap();
        table.append(&mut self.0.acquire().await.unwrap(), message).await.unwrap().get()
    }

    /// The application's own write, in a transaction. What `cut` does not let end is rolled back.
    pub async fn append_in_transaction(
        &self,
        table: &OutboxTable,
        message: &NewMessage,
        cut: impl AsyncFnOnce(Pin<Box<dyn Future<Output = ()> + Send + '_>>) -> Option<()>,
    ) {
        let table = PostgresTable::new(table.clone()).unwrap();
        let mut connection = self.0.acquire().await.unwrap();
        let mut transaction = connection.begin().await.unwrap();
        let append = async {
            table.append(&mut transaction, message).await.unwrap();
        };
        if cut(Box::pin(append)).await.is_some() {
            transaction.commit().await.unwrap();
        }
    }

    /// A setting of a session of the pool.
    pub async fn show(&self, setting: &str) -> String {
        let show = AssertSqlSafe(format!("SHOW {setting}"));
        sqlx::query_scalar(show).fetch_one(&self.0).await.unwrap()
    }

    /// Takes a connection, and keeps it until it is dropped.
    pub async fn lend(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        self.0.acquire().await
    }

    /// How many connections it has.
    pub fn size(&self) -> u32 {
        self.0.size()
    }

    /// How many it may have.
    pub fn max_size(&self) -> u32 {
        self.0.options().get_max_connections()
    }

    /// Closes what is open.
    pub async fn close(&self) {
        self.0.close().await;
    }
}

/// Closes what a store has open.
pub async fn close(store: PostgresStore) {
    store.pool().close().await;
}
