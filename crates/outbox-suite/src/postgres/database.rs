//! A database of its own for each test, on the server that `OUTBOX_TEST_POSTGRES_URL` names.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outbox_core::{MessageId, NewMessage};
use outbox_sql::OutboxTable;
use outbox_sqlx::postgres::{PostgresTable, Watermark};
use servers::Postgres;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

use crate::server::{Driver, StorePool};
use crate::{AnyStore, numbered};

/// The application name of the stores' sessions.
pub const STORE: &str = "outbox_store";

/// A role that is no superuser, so that privileges and row security hold for it.
pub const ROLE: &str = "outbox_test_app";

/// The locks on this database's tenants.
const HELD: &str = "pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

fn server() -> PgConnectOptions {
    let url = std::env::var("OUTBOX_TEST_POSTGRES_URL").unwrap_or_else(|_| {
        panic!("OUTBOX_TEST_POSTGRES_URL is not set: run `cargo xtask test`, which starts a server")
    });
    PgConnectOptions::from_str(&url).unwrap()
}

/// A fresh database.
#[derive(Clone)]
pub struct Database {
    pub(crate) driver: Driver<Self>,
    /// What it is called.
    pub name: String,
    /// How a superuser connects to it.
    pub options: PgConnectOptions,
    /// A superuser's pool on it.
    pub admin: PgPool,
}

impl Database {
    /// One on the server that all tests share.
    pub async fn create(driver: Driver<Self>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outbox_test_{}_{now}_{count}", std::process::id());
        let mut server = PgConnection::connect_with(&server()).await.unwrap();
        // Nobody is ever connected to template0, so that creating databases side by side never fails.
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0")))
            .execute(&mut server)
            .await
            .unwrap();
        let role = format!(
            "DO $$ BEGIN CREATE ROLE {ROLE}; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$"
        );
        sqlx::raw_sql(AssertSqlSafe(role)).execute(&mut server).await.unwrap();
        server.close().await.unwrap();
        let options = self::server().database(&name);
        let admin = PgPoolOptions::new().max_connections(4).connect_lazy_with(options.clone());
        Self { driver, name, options, admin }
    }

    /// A fresh database of a server that only some tests use. Its name begins like this.
    pub async fn on(driver: Driver<Self>, server: &Postgres, name: &str) -> Self {
        let name = numbered(name);
        server.create_database(&name).unwrap();
        let options = PgConnectOptions::from_str(&server.url(&name)).unwrap();
        let admin = PgPoolOptions::new().max_connections(4).connect_lazy_with(options.clone());
        // Another test of the same server may have made it.
        let _ = sqlx::raw_sql(AssertSqlSafe(format!("CREATE ROLE {ROLE}"))).execute(&admin).await;
        Self { driver, name, options, admin }
    }

    /// How the stores' pools are made.
    pub fn driver(&self) -> Driver<Self> {
        self.driver
    }

    /// A pool of at most `size` connections, of the unprivileged role.
    pub fn pool(&self, application: &str, size: u32) -> PgPool {
        let options = self.options.clone().application_name(application).options([("role", ROLE)]);
        PgPoolOptions::new().max_connections(size).connect_lazy_with(options)
    }

    /// Runs statements as the superuser.
    pub async fn run(&self, sql: impl Into<String>) {
        sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(&self.admin).await.unwrap();
    }

    /// A number, as the superuser sees it.
    pub async fn number(&self, sql: impl Into<String>) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&self.admin).await.unwrap()
    }

    /// A text, as the superuser sees it.
    pub async fn text(&self, sql: impl Into<String>) -> String {
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&self.admin).await.unwrap()
    }

    /// Makes a table that the unprivileged role may use.
    pub async fn make(&self, table: &OutboxTable) -> PostgresTable {
        let table = PostgresTable::new(table.clone()).unwrap();
        table.create(&mut self.admin.acquire().await.unwrap()).await.unwrap();
        let name = table.description().quoted(outbox_sql::Dialect::Postgres);
        self.run(format!("GRANT SELECT, INSERT, UPDATE ON {name} TO {ROLE}")).await;
        table
    }

    /// A store with a pool of its own.
    pub fn store(&self, table: &OutboxTable) -> AnyStore {
        self.store_pool(4).store(table)
    }

    /// A pool for a store.
    pub fn store_pool(&self, size: u32) -> StorePool {
        self.driver.pool(self.store_options(), size)
    }

    /// How a store connects: as the unprivileged role.
    pub fn store_options(&self) -> PgConnectOptions {
        self.options.clone().application_name(STORE).options([("role", ROLE)])
    }

    /// Appends messages in a transaction of their own, and answers their ids.
    pub async fn append(&self, table: &PostgresTable, messages: &[NewMessage]) -> Vec<i64> {
        let mut transaction = self.admin.begin().await.unwrap();
        let ids = table.append_all(&mut transaction, messages).await.unwrap();
        transaction.commit().await.unwrap();
        ids.into_iter().map(MessageId::get).collect()
    }

    /// Waits until a condition holds, as the superuser sees it.
    pub async fn wait_until(&self, condition: &str) {
        let waiting = async {
            while !sqlx::query_scalar::<_, bool>(AssertSqlSafe(condition.to_owned()))
                .fetch_one(&self.admin)
                .await
                .unwrap()
            {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(50), waiting)
            .await
            .unwrap_or_else(|_| panic!("it never came about: {condition}"));
    }

    /// Waits until no session of this application has a transaction or an advisory lock.
    pub async fn wait_until_nothing_is_left(&self, application: &str) {
        self.wait_until(&format!(
            "SELECT NOT EXISTS (SELECT FROM pg_stat_activity AS session
                 LEFT JOIN pg_locks AS held ON held.pid = session.pid AND held.locktype = 'advisory'
                 WHERE session.datname = current_database() AND session.application_name = '{application}'
                   AND (session.xact_start IS NOT NULL OR held.pid IS NOT NULL))"
        ))
        .await;
    }

    /// How many sessions of an application there are on this database.
    pub async fn sessions(&self, application: &str) -> usize {
        let count = format!(
            "SELECT count(*) FROM pg_stat_activity
             WHERE application_name = '{application}' AND datname = current_database()"
        );
        self.number(count).await.try_into().unwrap()
    }

    /// How many sessions hold a tenant.
    pub async fn holders(&self) -> usize {
        self.number(format!("SELECT count(DISTINCT pid) FROM {HELD}")).await.try_into().unwrap()
    }

    /// Ends the sessions that hold a tenant, as an operator does; answers how many.
    pub async fn terminate_holders(&self) -> usize {
        self.number(format!("SELECT count(pg_terminate_backend(pid)) FROM {HELD}")).await.try_into().unwrap()
    }

    /// Adds a gate, for a lock statement that hashes its key with it: it waits there while the gate is shut, and
    /// before the lock is asked for.
    pub(crate) async fn add_gate(&self) {
        self.run(
            "CREATE SCHEMA gate;
             GRANT USAGE ON SCHEMA gate TO PUBLIC;
             CREATE FUNCTION gate.hashtext(text) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN
                 PERFORM pg_catalog.pg_advisory_lock_shared(4711);
                 PERFORM pg_catalog.pg_advisory_unlock_shared(4711);
                 RETURN pg_catalog.hashtext($1);
             END $$",
        )
        .await;
    }

    /// Shuts the gate until it is opened.
    pub(crate) async fn shut_gate(&self) -> ShutGate {
        let mut keeper = PgConnection::connect_with(&self.options).await.unwrap();
        sqlx::raw_sql("SELECT pg_advisory_lock(4711)").execute(&mut keeper).await.unwrap();
        ShutGate { keeper }
    }

    /// Waits until somebody stands at the gate.
    pub(crate) async fn wait_until_at_gate(&self) {
        let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                           AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
        self.wait_until(waiting).await;
    }

    /// Drops it.
    pub async fn drop(self) {
        self.admin.close().await;
        let mut server = PgConnection::connect_with(&server()).await.unwrap();
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut server).await.unwrap();
    }
}

/// The gate, shut.
pub(crate) struct ShutGate {
    keeper: PgConnection,
}

impl ShutGate {
    /// Opens it.
    pub(crate) async fn open(self) {
        self.keeper.close().await.unwrap();
    }
}

/// Watermarks that rise at every chance, and are never looked below of themselves.
pub fn eager() -> Watermark {
    Watermark::new().with_look_every(Duration::MAX).with_worth(0, Duration::ZERO)
}
