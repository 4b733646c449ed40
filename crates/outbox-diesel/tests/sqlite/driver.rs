//! How the stores on Diesel are made, with connections of their own.

use std::num::NonZeroU32;

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, SqliteConnection};
use outbox_core::{MessageId, NewMessage, async_trait};
use outbox_diesel::sqlite::{SqliteConnections, SqliteConnector, SqliteStore, SqliteTable};
use outbox_diesel::{InvalidTable, OutboxTable};
use outbox_suite::sqlite::{Application, Driver, Open, SqliteDriver};
use outbox_suite::{AnyStore, AppendError, Setting};

#[derive(Default)]
pub(crate) struct OnDiesel;

/// For the tests that are of Diesel alone.
pub(crate) fn driver() -> Driver {
    Driver::of::<OnDiesel>(module_path!())
}

#[async_trait]
impl SqliteDriver for OnDiesel {
    fn names(&self) -> [&'static str; 3] {
        ["sqlite on diesel", "sqlite on diesel, deleting", "sqlite on diesel, in memory"]
    }

    fn ddl(&self, table: OutboxTable) -> Result<String, InvalidTable> {
        SqliteTable::new(table).map(|table| table.ddl())
    }

    fn store(&self, open: &Open, table: OutboxTable) -> AnyStore {
        store_on(connector(open), table)
    }

    async fn connect(&self, open: &Open) -> Box<dyn Application> {
        let mut connection = SqliteConnection::establish(&url(open)).expect("the database opens");
        connection.batch_execute(&setup(open)).expect("set up");
        Box::new(Connection(connection))
    }
}

/// A store of a test of the suite.
pub(crate) fn store_on(connections: impl Into<SqliteConnections>, table: OutboxTable) -> AnyStore {
    let store = SqliteStore::new(connections, table).expect("a valid table");
    let set = |store: SqliteStore, setting| match setting {
        Setting::Settling(settling) => store.with_settling(settling),
        other => panic!("a SQLite store on Diesel has no {other:?}"),
    };
    AnyStore::new(store, set, |store| Box::pin(store.check()))
}

fn connector(open: &Open) -> SqliteConnector {
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
struct Connection(SqliteConnection);

#[async_trait]
impl Application for Connection {
    async fn execute(&mut self, statements: &str) {
        self.0.batch_execute(statements).expect("executed");
    }

    async fn append(&mut self, table: &OutboxTable, message: &NewMessage) -> Result<MessageId, AppendError> {
        let table = SqliteTable::new(table.clone()).expect("a valid table");
        Ok(table.append(message).execute(&mut self.0)?)
    }

    async fn append_all(
        &mut self,
        table: &OutboxTable,
        messages: &[NewMessage],
    ) -> Result<Vec<MessageId>, AppendError> {
        let table = SqliteTable::new(table.clone()).expect("a valid table");
        Ok(table.append_all(messages).execute(&mut self.0)?)
    }
}
