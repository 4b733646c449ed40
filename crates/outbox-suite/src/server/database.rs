//! A database of its own for each test, as the tests of every server see it.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use outbox_core::{MessageId, NewMessage, async_trait};
use outbox_sql::{Dialect, OutboxTable};
use sqlx::Transaction;

use super::driver::Driver;
use super::stage::soon;

/// A server that a test may stop, and start again.
pub trait PrivateServer: Send + Sync + Sized + 'static {
    /// A fresh one.
    fn start() -> Self;
    /// Where it listens.
    fn address(&self) -> SocketAddr;
    /// As a superuser, this database.
    fn url(&self, database: &str) -> String;
    /// Stops it in good order, and starts it.
    fn restart(&mut self);
    /// Kills it, and starts it.
    fn crash_and_start(&mut self);
}

/// A fresh database.
#[async_trait]
pub trait ServerDatabase: Clone + Send + Sync + Sized + 'static {
    /// The words that its statements are written in.
    const DIALECT: Dialect;
    /// How sqlx connects to it.
    type Options: FromStr<Err: Debug> + Clone + Send + Sync + 'static;
    /// What sqlx calls it.
    type Sql: sqlx::Database;
    /// An outbox table of sqlx.
    type Table: Clone + Send + Sync + 'static;
    /// A server of its own.
    type Server: PrivateServer;

    /// One on the server that all tests share.
    async fn create(driver: Driver<Self>) -> Self;
    /// One of a server that only some tests use, whose name begins like this.
    async fn on(driver: Driver<Self>, server: &Self::Server, name: &str) -> Self;
    /// A private server over TCP, for the tests that put something between it and the store. It lives as long as
    /// this process.
    fn tcp_server() -> &'static Self::Server;
    /// What it is called.
    fn name(&self) -> &str;
    /// How the stores' pools are made.
    fn driver(&self) -> Driver<Self>;
    /// How a store connects.
    fn store_options(&self) -> Self::Options;
    /// The same, by this port of this machine.
    fn by_port(options: Self::Options, port: u16) -> Self::Options;
    /// Makes a table that a store may use.
    async fn make(&self, table: &OutboxTable) -> Self::Table;
    /// What a table is called, and its columns.
    fn description(table: &Self::Table) -> &OutboxTable;
    /// Appends messages in a transaction of their own.
    async fn append(&self, table: &Self::Table, messages: &[NewMessage]) -> Vec<i64>;
    /// A superuser's transaction, in which these statements were run.
    async fn begin(&self, statements: &'static str) -> Transaction<'static, Self::Sql>;
    /// Appends a message in such a transaction.
    async fn append_in(
        table: &Self::Table,
        transaction: &mut Transaction<'static, Self::Sql>,
        message: &NewMessage,
    ) -> MessageId;
    /// Runs statements as a superuser.
    async fn run(&self, sql: &str);
    /// A number, as a superuser sees it.
    async fn number(&self, sql: &str) -> i64;
    /// A text, as a superuser sees it.
    async fn text(&self, sql: &str) -> String;
    /// Waits until a condition holds, as a superuser sees it.
    async fn wait_until(&self, condition: &str);
    /// Waits until no session of a store has a transaction or a lock.
    async fn wait_until_nothing_is_left(&self);
    /// How many sessions stores have.
    async fn sessions(&self) -> usize;
    /// How many sessions hold a tenant.
    async fn holders(&self) -> usize;
    /// Waits until no session holds a tenant: a server needs a moment for one whose socket closed.
    async fn wait_until_nobody_holds(&self) {
        let waiting = async {
            while self.holders().await > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        soon("nobody holds a tenant", waiting).await;
    }
    /// Ends the sessions that hold a tenant, as an operator does; answers how many.
    async fn terminate_holders(&self) -> usize;
    /// Drops it.
    async fn drop(self);
    /// Closes the test's own sessions, and leaves it to its server.
    async fn leave(self);
}
