//! The store under test: what differs from ORM to ORM, and from pool to pool.
#![allow(dead_code, unreachable_pub)] // each test binary uses its part

use std::pin::Pin;
use std::time::Duration;

use outbox_core::NewMessage;
use outbox_sqlx::OutboxTable;
pub use outbox_sqlx::mysql::MySqlStore;
use outbox_sqlx::mysql::MySqlTable;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Connection, MySql, MySqlPool};

/// A store's pool.
#[derive(Debug, Clone)]
pub struct StorePool(MySqlPool);

impl StorePool {
    /// A pool that connects when it is used.
    pub fn new(options: MySqlConnectOptions, size: u32) -> Self {
        Self(builder(size).connect_lazy_with(options))
    }

    /// A pool that keeps a connection, and so may have something to do when it loses one.
    pub fn that_keeps_one(options: MySqlConnectOptions, size: u32) -> Self {
        Self(builder(size).min_connections(1).connect_lazy_with(options))
    }

    /// A pool whose connections are old after this time.
    pub fn that_retires(options: MySqlConnectOptions, size: u32, after: Duration) -> Self {
        let pool = builder(size).max_lifetime(after).idle_timeout(after / 2);
        Self(pool.connect_lazy_with(options))
    }

    /// A pool whose sessions begin with this statement, as an application's may.
    pub fn that_begins(options: MySqlConnectOptions, size: u32, begin: &'static str) -> Self {
        let pool = MySqlPoolOptions::new().max_connections(size).after_connect(move |session, _| {
            Box::pin(async move { sqlx::raw_sql(begin).execute(session).await.map(drop) })
        });
        Self(pool.connect_lazy_with(options))
    }

    pub fn store(&self, table: &OutboxTable) -> MySqlStore {
        MySqlStore::new(self.0.clone(), table.clone()).unwrap()
    }

    /// The pool of this store.
    pub fn of(store: &MySqlStore) -> Self {
        Self(store.pool().clone())
    }

    /// The application's own write on a connection of the pool, in no transaction.
    pub async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = MySqlTable::new(table.clone()).unwrap();
        table.append(&mut self.0.acquire().await.unwrap(), message).await.unwrap().get()
    }

    /// The application's own write, in a transaction. What `cut` does not let end is rolled back.
    pub async fn append_in_transaction(
        &self,
        table: &OutboxTable,
        message: &NewMessage,
        cut: impl AsyncFnOnce(Pin<Box<dyn Future<Output = ()> + Send + '_>>) -> Option<()>,
    ) {
        let table = MySqlTable::new(table.clone()).unwrap();
        let mut connection = self.0.acquire().await.unwrap();
        let mut transaction = connection.begin().await.unwrap();
        let append = async {
            table.append(&mut transaction, message).await.unwrap();
        };
        if cut(Box::pin(append)).await.is_some() {
            transaction.commit().await.unwrap();
        } else {
            drop(transaction);
            // The driver may never get such a connection back into its pool, whoever cut its query.
            drop(connection.detach());
        }
    }

    /// What a session of the pool answers, in two columns of text.
    pub async fn pairs(&self, question: &str) -> Vec<(String, String)> {
        let question = sqlx::query_as(AssertSqlSafe(question.to_owned()));
        question.persistent(false).fetch_all(&self.0).await.unwrap()
    }

    /// Takes a connection, and keeps it until it is dropped.
    pub async fn lend(&self) -> Result<PoolConnection<MySql>, sqlx::Error> {
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

fn builder(size: u32) -> MySqlPoolOptions {
    // A server takes some 150 connections, and a random story opens a pool for each of its replicas.
    MySqlPoolOptions::new().max_connections(size).idle_timeout(Duration::from_secs(1))
}

/// Closes what a store has open.
pub async fn close(store: MySqlStore) {
    store.pool().close().await;
}
