//! The store under test: what differs from ORM to ORM.

use std::num::NonZeroU32;

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, SqliteConnection};
use outbox_core::{MessageId, NewMessage};
pub(crate) use outbox_diesel::AppendError;
use outbox_diesel::OutboxTable;
use outbox_diesel::sqlite::SqliteConnector;
pub(crate) use outbox_diesel::sqlite::{SqliteStore, SqliteTable};

use crate::support::Open;

/// What a store is called in reports: marking, deleting, in memory.
pub(crate) const NAMES: [&str; 3] =
    ["sqlite on diesel", "sqlite on diesel, deleting", "sqlite on diesel, in memory"];

/// A store with connections of its own, as another process has it.
pub(crate) fn store(open: &Open, table: OutboxTable) -> SqliteStore {
    SqliteStore::new(connector(open), table).expect("a valid table")
}

pub(crate) fn connector(open: &Open) -> SqliteConnector {
    let setup = setup(open);
    SqliteConnector::new(url(open))
        .with_max_connections(NonZeroU32::new(open.connections).expect("some connections"))
        .with_setup(move |connection| connection.batch_execute(&setup))
}

pub(crate) fn url(open: &Open) -> String {
    if open.read_only { format!("file:{}?mode=ro", open.name) } else { open.name.clone() }
}

/// What is done with every new connection.
pub(crate) fn setup(open: &Open) -> String {
    format!("PRAGMA busy_timeout = {}; {}", open.busy.as_millis(), open.setup)
}

/// An application's own connection.
pub(crate) struct Application(SqliteConnection);

impl Application {
    #[expect(clippy::unused_async, reason = "other drivers wait here")]
    pub(crate) async fn connect(open: &Open) -> Self {
        let mut connection = SqliteConnection::establish(&url(open)).expect("the database opens");
        connection.batch_execute(&setup(open)).expect("set up");
        Self(connection)
    }

    #[expect(clippy::unused_async, reason = "other drivers wait here")]
    pub(crate) async fn execute(&mut self, statement: &str) {
        self.0.batch_execute(statement).expect("executed");
    }

    #[expect(clippy::unused_async, reason = "other drivers wait here")]
    pub(crate) async fn append(
        &mut self,
        table: &SqliteTable,
        message: &NewMessage,
    ) -> Result<MessageId, AppendError> {
        table.append(message).execute(&mut self.0)
    }

    #[expect(clippy::unused_async, reason = "other drivers wait here")]
    pub(crate) async fn append_all(
        &mut self,
        table: &SqliteTable,
        messages: &[NewMessage],
    ) -> Result<Vec<MessageId>, AppendError> {
        table.append_all(messages).execute(&mut self.0)
    }
}
