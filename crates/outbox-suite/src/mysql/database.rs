//! A database of its own for each test, on the server that `OUTBOX_TEST_MYSQL_URL` names.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outbox_core::{MessageId, NewMessage};
use outbox_sql::OutboxTable;
use outbox_sqlx::mysql::MySqlTable;
use servers::MariaDb;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, MySqlPool, Row};

use crate::server::Driver;
use crate::{AnyStore, numbered};

/// The user of the stores' sessions. It may do what a relay has to, and nothing else.
pub const STORE: &str = "outbox_test_store";

/// The user of the application's sessions, with the same rights.
pub const WRITER: &str = "outbox_test_writer";

fn server() -> MySqlConnectOptions {
    let url = std::env::var("OUTBOX_TEST_MYSQL_URL").unwrap_or_else(|_| {
        panic!("OUTBOX_TEST_MYSQL_URL is not set: run `cargo xtask test`, which starts a server")
    });
    MySqlConnectOptions::from_str(&url).unwrap()
}

/// A fresh database.
#[derive(Clone)]
pub struct Database {
    driver: Driver<Self>,
    /// What it is called.
    pub name: String,
    /// How `root` connects to it.
    pub options: MySqlConnectOptions,
    /// `root`'s pool on it.
    pub admin: MySqlPool,
}

impl Database {
    /// One on the server that all tests share.
    pub async fn create(driver: Driver<Self>) -> Self {
        Self::create_on(driver, server()).await
    }

    /// A fresh database of a server that these options reach as `root`.
    pub async fn create_on(driver: Driver<Self>, server: MySqlConnectOptions) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self::create_as(driver, server, &format!("outbox_test_{}_{now}_{count}", std::process::id())).await
    }

    /// A fresh database of a server that only some tests use. Its name begins like this.
    pub async fn on(driver: Driver<Self>, server: &MariaDb, name: &str) -> Self {
        let options = MySqlConnectOptions::from_str(&server.url("mysql")).unwrap();
        Self::create_as(driver, options, &numbered(name)).await
    }

    async fn create_as(driver: Driver<Self>, server: MySqlConnectOptions, name: &str) -> Self {
        let mut session = MySqlConnection::connect_with(&server).await.unwrap();
        let mut made = format!("CREATE DATABASE {name} CHARACTER SET latin1");
        for user in [STORE, WRITER] {
            made += &*format!("; CREATE USER IF NOT EXISTS {user}@'%' IDENTIFIED BY ''");
        }
        sqlx::raw_sql(AssertSqlSafe(made)).execute(&mut session).await.unwrap();
        session.close().await.unwrap();
        let options = server.database(name);
        let admin = MySqlPoolOptions::new().max_connections(4).connect_lazy_with(options.clone());
        Self { driver, name: name.to_owned(), options, admin }
    }

    /// How the stores' pools are made.
    pub fn driver(&self) -> Driver<Self> {
        self.driver
    }

    /// How a store connects.
    pub fn store_options(&self) -> MySqlConnectOptions {
        self.options_of(STORE)
    }

    /// How an unprivileged user connects.
    pub fn options_of(&self, user: &str) -> MySqlConnectOptions {
        // None of root's password: these users have none, so that no connection needs TLS or RSA for it.
        let options = MySqlConnectOptions::new().host(self.options.get_host()).port(self.options.get_port());
        options.username(user).database(&self.name)
    }

    /// A pool of at most `size` connections, of an unprivileged user.
    pub fn pool(&self, user: &str, size: u32) -> MySqlPool {
        // A server takes some 150 connections.
        let idle = Duration::from_secs(1);
        let pool = MySqlPoolOptions::new().max_connections(size).idle_timeout(idle);
        pool.connect_lazy_with(self.options_of(user))
    }

    /// Runs statements as `root`.
    pub async fn run(&self, sql: impl Into<String>) {
        sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(&self.admin).await.unwrap();
    }

    /// A number, as `root` sees it.
    pub async fn number(&self, sql: impl Into<String>) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.into())).persistent(false).fetch_one(&self.admin).await.unwrap()
    }

    /// A text, as `root` sees it.
    pub async fn text(&self, sql: impl Into<String>) -> String {
        sqlx::query_scalar(AssertSqlSafe(sql.into())).persistent(false).fetch_one(&self.admin).await.unwrap()
    }

    /// Makes a table that the unprivileged users may use.
    pub async fn make(&self, table: &OutboxTable) -> MySqlTable {
        let table = MySqlTable::new(table.clone()).unwrap();
        table.create(&mut self.admin.acquire().await.unwrap()).await.unwrap();
        for user in [STORE, WRITER] {
            for name in [table.description().name().to_owned(), table.description().claims_name()] {
                let name = outbox_sql::identifier::quote(&name, outbox_sql::Dialect::MySql);
                self.run(format!("GRANT SELECT, INSERT, UPDATE ON {}.{name} TO {user}@'%'", self.name)).await;
            }
        }
        table
    }

    /// A store with a pool of its own.
    pub fn store(&self, table: &OutboxTable) -> AnyStore {
        self.driver.pool(self.options_of(STORE), 4).store(table)
    }

    /// Appends messages in a transaction of their own, and answers their ids.
    pub async fn append(&self, table: &MySqlTable, messages: &[NewMessage]) -> Vec<i64> {
        let mut transaction = self.admin.begin().await.unwrap();
        let ids = table.append_all(&mut transaction, messages).await.unwrap();
        transaction.commit().await.unwrap();
        ids.into_iter().map(MessageId::get).collect()
    }

    /// Waits until a condition holds, as `root` sees it.
    pub async fn wait_until(&self, condition: &str) {
        let waiting = async {
            while self.number(format!("SELECT ({condition}) IS TRUE")).await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(50), waiting)
            .await
            .unwrap_or_else(|_| panic!("it never came about: {condition}"));
    }

    /// How many sessions of a user there are on this database.
    pub async fn sessions(&self, user: &str) -> usize {
        self.session_ids(user).await.len()
    }

    /// Those of a user, or of anybody: `%`.
    async fn session_ids(&self, user: &str) -> Vec<i64> {
        let ask = format!(
            "SELECT cast(ID AS signed) FROM information_schema.PROCESSLIST WHERE USER LIKE '{user}' AND DB = '{}'",
            self.name
        );
        loop {
            let asked = sqlx::query_scalar(AssertSqlSafe(ask.clone())).persistent(false);
            match asked.fetch_all(&self.admin).await {
                Ok(ids) => return ids,
                // MySQL cannot show a statement that has bytes in it, whoever runs it at this moment.
                Err(sqlx::Error::Database(error)) if error.message().starts_with("Cannot convert string") => {
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// How many transactions of a user's sessions are open.
    pub async fn transactions(&self, user: &str) -> usize {
        self.transactions_like(user, "ACTIVE").await.len()
    }

    /// How many transactions of a user's sessions wait for a lock.
    pub async fn waiting(&self, user: &str) -> usize {
        self.transactions_like(user, "LOCK WAIT").await.len()
    }

    /// How many sessions hold a tenant.
    pub async fn holders(&self) -> usize {
        self.holder_ids().await.len()
    }

    /// Ends the sessions that hold a tenant, as an operator does; answers how many.
    pub async fn terminate_holders(&self) -> usize {
        let holders = self.holder_ids().await;
        self.kill(&holders).await;
        holders.len()
    }

    /// Who only asks for a tenant that another holds has no row locked.
    async fn holder_ids(&self) -> Vec<i64> {
        self.transactions_like("%", " 1 row lock(s)").await
    }

    /// Asks the storage engine itself: the table `INNODB_TRX` shows an old picture for as long as anybody looks.
    async fn transactions_like(&self, user: &str, like: &str) -> Vec<i64> {
        let status = sqlx::raw_sql("SHOW ENGINE INNODB STATUS").fetch_one(&self.admin).await.unwrap();
        let status: String = status.get(2);
        let sessions = self.session_ids(user).await;
        let of = |transaction: &str| {
            let id = transaction.split(" thread id ").nth(1)?.split(',').next()?;
            id.parse::<i64>().ok()
        };
        status
            .split("---TRANSACTION ")
            .skip(1)
            .filter(|transaction| transaction.contains(like))
            .filter_map(of)
            .filter(|session| sessions.contains(session))
            .collect()
    }

    /// How many rows of a table's claims are locked.
    pub async fn locked_claims(&self, table: &MySqlTable) -> usize {
        let claims = table.description().claims_name();
        let claims = outbox_sql::identifier::quote(&claims, outbox_sql::Dialect::MySql);
        let mut transaction = self.admin.begin().await.unwrap();
        let all: i64 = sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {claims}")))
            .persistent(false)
            .fetch_one(&mut *transaction)
            .await
            .unwrap();
        let free = sqlx::query(AssertSqlSafe(format!("SELECT 1 FROM {claims} FOR UPDATE SKIP LOCKED")))
            .persistent(false)
            .fetch_all(&mut *transaction)
            .await
            .unwrap();
        transaction.rollback().await.unwrap();
        usize::try_from(all).unwrap() - free.len()
    }

    /// Ends every session of a user on this database, and waits until they are gone.
    pub async fn kill_sessions(&self, user: &str) {
        let killed = self.session_ids(user).await;
        self.kill(&killed).await;
    }

    async fn kill(&self, sessions: &[i64]) {
        for id in sessions {
            // One that has ended meanwhile is no matter.
            let _ = sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}"))).execute(&self.admin).await;
        }
        let waiting = async {
            while self.session_ids("%").await.iter().any(|id| sessions.contains(id)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(50), waiting).await.expect("a killed session does not end");
    }

    /// Waits until no session of this user has a transaction.
    pub async fn wait_until_nothing_is_left(&self, user: &str) {
        let waiting = async {
            while self.transactions(user).await > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(50), waiting).await.expect("a transaction is left open");
    }

    /// Drops it.
    pub async fn drop(self) {
        self.run(format!("DROP DATABASE {}", self.name)).await;
        self.admin.close().await;
    }
}
