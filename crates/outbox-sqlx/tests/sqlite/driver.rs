//! How the stores on sqlx are made.

use outbox_core::{MessageId, NewMessage, async_trait};
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use outbox_sqlx::{InvalidTable, OutboxTable};
use outbox_suite::sqlite::{Application, Driver, Open, SqliteDriver};
use outbox_suite::{AnyStore, AppendError, Setting};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, SqliteConnection};

#[derive(Default)]
pub(crate) struct OnSqlx;

/// For the tests that are of sqlx alone.
pub(crate) fn driver() -> Driver {
    Driver::of::<OnSqlx>(module_path!())
}

#[async_trait]
impl SqliteDriver for OnSqlx {
    fn names(&self) -> [&'static str; 3] {
        ["sqlite", "sqlite, deleting", "sqlite in memory"]
    }

    fn ddl(&self, table: OutboxTable) -> Result<String, InvalidTable> {
        SqliteTable::new(table).map(|table| table.ddl())
    }

    fn store(&self, open: &Open, table: OutboxTable) -> AnyStore {
        let store = SqliteStore::new(pool(open), table).expect("a valid table");
        let set = |store: SqliteStore, setting| match setting {
            Setting::Settling(settling) => store.with_settling(settling),
            other => panic!("a SQLite store on sqlx has no {other:?}"),
        };
        AnyStore::new(store, set, |store| Box::pin(store.check()))
    }

    async fn connect(&self, open: &Open) -> Box<dyn Application> {
        Box::new(Connection(options(open).connect().await.expect("the database opens")))
    }
}

pub(crate) fn pool(open: &Open) -> SqlitePool {
    let setup = open.setup.clone();
    SqlitePoolOptions::new()
        .max_connections(open.connections)
        .after_connect(move |connection, _| {
            let setup = AssertSqlSafe(setup.clone());
            Box::pin(async move { sqlx::raw_sql(setup).execute(connection).await.map(drop) })
        })
        .connect_lazy_with(options(open))
}

fn options(open: &Open) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(&open.name).read_only(open.read_only).busy_timeout(open.busy)
}

/// An application's own connection.
struct Connection(SqliteConnection);

#[async_trait]
impl Application for Connection {
    async fn execute(&mut self, statements: &str) {
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut self.0).await.expect("executed");
    }

    async fn append(&mut self, table: &OutboxTable, message: &NewMessage) -> Result<MessageId, AppendError> {
        let table = SqliteTable::new(table.clone()).expect("a valid table");
        Ok(table.append(&mut self.0, message).await?)
    }

    async fn append_all(
        &mut self,
        table: &OutboxTable,
        messages: &[NewMessage],
    ) -> Result<Vec<MessageId>, AppendError> {
        let table = SqliteTable::new(table.clone()).expect("a valid table");
        Ok(table.append_all(&mut self.0, messages).await?)
    }
}
