//! Settings of a session that turn what a read sees.

use outbox_core::{ProbeRequest, Store, StoreErrorKind, Tenants};
use outbox_sql::OutboxTable;

use crate::mysql::{Database, Driver, STORE};
use crate::server::{message, refused, tenant};

/// Promise: what rolls back is never seen, and what is committed is. Where a session's settings make a read show
/// something else, every operation refuses them, before it shows anything.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_session_that_does_not_see_what_is_committed_is_refused(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    for name in ["acme", "globex"] {
        database.append(&table, &[message(name, "1")]).await;
    }
    let versioned = "SET system_versioning_asof = '2020-01-01 00:00:00'";
    let mut settings = vec![
        ("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "isolation"),
        ("SET sql_select_limit = 1", "sql_select_limit"),
        ("SET timestamp = 1", "timestamp"),
    ];
    if database.text("SELECT version()").await.contains("MariaDB") {
        settings.push((versioned, "system_versioning_asof"));
    }
    for (setting, named) in settings {
        let store =
            driver.pool_that_begins(database.options_of(STORE), 2, setting).store(table.description());
        let mut errors = vec![
            store.pending(&tenant("acme"), 10.try_into().unwrap()).await.map(|rows| rows.len()).unwrap_err(),
            refused(&store, "acme").await,
        ];
        for tenants in [Tenants::Named([tenant("acme"), tenant("globex")].into()), Tenants::Discovered] {
            errors.push(store.probe(&ProbeRequest::new(tenants)).await.unwrap_err());
        }
        for error in errors {
            assert_eq!(error.kind(), StoreErrorKind::Permanent, "{setting}: {error}");
            assert!(error.message().contains(named), "{setting}: {error}");
        }
        let found = store.check().await.unwrap();
        assert!(found.len() == 1 && found[0].message.contains(named), "{setting}: {found:?}");
        store.close().await;
    }
    database.drop().await;
}
