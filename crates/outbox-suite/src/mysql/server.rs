//! MySQL and MariaDB, as the tests of every server see it.

use std::net::SocketAddr;
use std::sync::OnceLock;

use outbox_core::{MessageId, NewMessage, async_trait};
use outbox_sql::{Dialect, OutboxTable};
use outbox_sqlx::mysql::MySqlTable;
use servers::MariaDb;
use sqlx::Transaction;
use sqlx::mysql::MySqlConnectOptions;

use super::Driver;
use super::database::{Database, STORE};
use crate::server::{PrivateServer, ServerDatabase};

impl PrivateServer for MariaDb {
    fn start() -> Self {
        Self::start(&[]).unwrap()
    }

    fn address(&self) -> SocketAddr {
        self.address()
    }

    fn url(&self, database: &str) -> String {
        self.url(database)
    }

    fn restart(&mut self) {
        self.restart().unwrap();
    }

    fn crash_and_start(&mut self) {
        self.crash().unwrap();
        self.start_again().unwrap();
    }
}

#[async_trait]
impl ServerDatabase for Database {
    const DIALECT: Dialect = Dialect::MySql;

    type Options = MySqlConnectOptions;
    type Sql = sqlx::MySql;
    type Table = MySqlTable;
    type Server = MariaDb;

    async fn create(driver: Driver) -> Self {
        Self::create(driver).await
    }

    async fn on(driver: Driver, server: &MariaDb, name: &str) -> Self {
        Self::on(driver, server, name).await
    }

    fn tcp_server() -> &'static MariaDb {
        static SERVER: OnceLock<MariaDb> = OnceLock::new();
        SERVER.get_or_init(|| MariaDb::start(&[]).unwrap())
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn driver(&self) -> Driver {
        self.driver()
    }

    fn store_options(&self) -> MySqlConnectOptions {
        self.store_options()
    }

    fn by_port(options: MySqlConnectOptions, port: u16) -> MySqlConnectOptions {
        options.host("127.0.0.1").port(port)
    }

    async fn make(&self, table: &OutboxTable) -> MySqlTable {
        self.make(table).await
    }

    fn description(table: &MySqlTable) -> &OutboxTable {
        table.description()
    }

    async fn append(&self, table: &MySqlTable, messages: &[NewMessage]) -> Vec<i64> {
        self.append(table, messages).await
    }

    async fn begin(&self, statements: &'static str) -> Transaction<'static, sqlx::MySql> {
        let mut transaction = self.admin.begin().await.unwrap();
        if !statements.is_empty() {
            sqlx::raw_sql(statements).execute(&mut *transaction).await.unwrap();
        }
        transaction
    }

    async fn append_in(
        table: &MySqlTable,
        transaction: &mut Transaction<'static, sqlx::MySql>,
        message: &NewMessage,
    ) -> MessageId {
        table.append(transaction, message).await.unwrap()
    }

    async fn run(&self, sql: &str) {
        self.run(sql).await;
    }

    async fn number(&self, sql: &str) -> i64 {
        self.number(sql).await
    }

    async fn text(&self, sql: &str) -> String {
        self.text(sql).await
    }

    async fn wait_until(&self, condition: &str) {
        self.wait_until(condition).await;
    }

    async fn wait_until_nothing_is_left(&self) {
        self.wait_until_nothing_is_left(STORE).await;
    }

    async fn sessions(&self) -> usize {
        self.sessions(STORE).await
    }

    async fn holders(&self) -> usize {
        self.holders().await
    }

    async fn terminate_holders(&self) -> usize {
        self.terminate_holders().await
    }

    async fn drop(self) {
        self.drop().await;
    }

    async fn leave(self) {
        self.admin.close().await;
    }
}
