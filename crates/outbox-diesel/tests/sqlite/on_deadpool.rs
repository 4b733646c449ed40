//! The laws, and what concerns a pool, on one of deadpool. A pool lends no database in memory.

use outbox_core::async_trait;
use outbox_diesel::{InvalidTable, OutboxTable};
use outbox_suite::AnyStore;
use outbox_suite::sqlite::{Application, On, Open, SqliteDriver};

use crate::driver::{OnDiesel, store_on};

/// The store on the application's pool; the application itself is the same.
#[derive(Default)]
struct OnDeadpool;

#[async_trait]
impl SqliteDriver for OnDeadpool {
    fn names(&self) -> [&'static str; 3] {
        ["sqlite on diesel and deadpool", "the same, deleting", "the same, in memory"]
    }

    fn ddl(&self, table: OutboxTable) -> Result<String, InvalidTable> {
        OnDiesel.ddl(table)
    }

    fn store(&self, open: &Open, table: OutboxTable) -> AnyStore {
        store_on(crate::pool::deadpool(open), table)
    }

    async fn connect(&self, open: &Open) -> Box<dyn Application> {
        OnDiesel.connect(open).await
    }
}

mod file {
    outbox_testkit::conformance!(super::On<super::OnDeadpool, false, false>);
}

outbox_suite::sqlite_pool_suite!(OnDeadpool);
