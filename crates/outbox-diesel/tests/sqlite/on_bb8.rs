//! The laws, on a pool of bb8. A pool lends no database in memory.

use crate::support;

/// The store on the application's pool; the application itself is the same.
mod driver {
    use outbox_diesel::OutboxTable;

    pub(crate) use crate::driver::{Application, SqliteStore, SqliteTable};
    use crate::support::Open;

    /// What a store is called in reports: marking, deleting, in memory.
    pub(crate) const NAMES: [&str; 3] =
        ["sqlite on diesel and bb8", "the same, deleting", "the same, in memory"];

    pub(crate) fn store(open: &Open, table: OutboxTable) -> SqliteStore {
        SqliteStore::new(crate::pool::bb8(open), table).expect("a valid table")
    }
}

#[path = "../../../outbox-sqlx/tests/sqlite/harness.rs"]
mod harness;
#[path = "../../../outbox-sqlx/tests/sqlite/replaced.rs"]
mod replaced;

mod file {
    outbox_testkit::conformance!(super::harness::On<false, false>);
}
