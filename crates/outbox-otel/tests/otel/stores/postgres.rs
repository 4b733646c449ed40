//! A private PostgreSQL server, and databases on it.

use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use outbox_core::{MessageId, NewMessage};
use outbox_sqlx::postgres::{PostgresStore, PostgresTable};
use outbox_sqlx::{AppendError, OutboxTable};
use servers::Postgres;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};

/// The server of this binary's tests. It ends with the process.
fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| Postgres::start(&[]).expect("a server"))
}

/// A database with an outbox table.
pub(crate) struct Database {
    pub(crate) pool: PgPool,
    pub(crate) table: PostgresTable,
    options: PgConnectOptions,
}

impl Database {
    /// On the server that tests share.
    pub(crate) async fn create(name: &str, table: OutboxTable) -> Self {
        Self::on(server(), name, table).await
    }

    /// On this server.
    pub(crate) async fn on(server: &Postgres, name: &str, table: OutboxTable) -> Self {
        server.create_database(name).expect("a new name");
        let options = PgConnectOptions::from_str(&server.url(name)).expect("a URL");
        let pool = PgPoolOptions::new().max_connections(4).connect_lazy_with(options.clone());
        let table = PostgresTable::new(table).expect("a valid table");
        table.create(&mut pool.acquire().await.expect("a connection")).await.expect("the table is made");
        Self { pool, table, options }
    }

    /// A store with a pool of its own, which connects to `port` instead of the server's own.
    pub(crate) fn store_on(&self, port: Option<u16>) -> PostgresStore {
        let options = self.options.clone();
        let options = if let Some(port) = port { options.host("127.0.0.1").port(port) } else { options };
        let pool = PgPoolOptions::new().max_connections(8).connect_lazy_with(options);
        PostgresStore::new(pool, self.table.description().clone()).expect("a valid table")
    }

    /// Appends in a transaction, as an application does.
    pub(crate) async fn append(&self, messages: &[NewMessage]) -> Result<Vec<MessageId>, AppendError> {
        let mut transaction = self.pool.begin().await.expect("a transaction");
        let ids = self.table.append_all(&mut transaction, messages).await?;
        transaction.commit().await.expect("it commits");
        Ok(ids)
    }

    pub(crate) async fn number(&self, sql: impl Into<String>) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&self.pool).await.expect("a number")
    }

    /// Waits until a number is this one.
    pub(crate) async fn wait_for(&self, sql: &str, expected: i64) {
        let waiting = async {
            while self.number(sql).await != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "it never became {expected}: {sql}");
    }
}
