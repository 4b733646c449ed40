//! The store under test: what differs from ORM to ORM.

use outbox_core::{MessageId, NewMessage};
pub(crate) use outbox_sqlx::AppendError;
use outbox_sqlx::OutboxTable;
pub(crate) use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, SqliteConnection};

use crate::support::Open;

/// What a store is called in reports: marking, deleting, in memory.
pub(crate) const NAMES: [&str; 3] = ["sqlite", "sqlite, deleting", "sqlite in memory"];

/// A store with connections of its own, as another process has it.
pub(crate) fn store(open: &Open, table: OutboxTable) -> SqliteStore {
    SqliteStore::new(pool(open), table).expect("a valid table")
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

pub(crate) fn options(open: &Open) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(&open.name).read_only(open.read_only).busy_timeout(open.busy)
}

/// An application's own connection.
pub(crate) struct Application(SqliteConnection);

impl Application {
    pub(crate) async fn connect(open: &Open) -> Self {
        Self(options(open).connect().await.expect("the database opens"))
    }

    pub(crate) async fn execute(&mut self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut self.0).await.expect("executed");
    }

    pub(crate) async fn append(
        &mut self,
        table: &SqliteTable,
        message: &NewMessage,
    ) -> Result<MessageId, AppendError> {
        table.append(&mut self.0, message).await
    }

    pub(crate) async fn append_all(
        &mut self,
        table: &SqliteTable,
        messages: &[NewMessage],
    ) -> Result<Vec<MessageId>, AppendError> {
        table.append_all(&mut self.0, messages).await
    }
}
