//! Rows that another program left behind.

use outbox_core::{ProbeRequest, Settlement, Store, StoreErrorKind, Tenants};
use outbox_sql::OutboxTable;

use crate::mysql::{Database, Driver};
use crate::server::{claim, message, refused, tenant};

/// A row that cannot be read stops its tenant with an error that names it, and nobody else; one whose tenant is no
/// text is nobody's, and ends no probe.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_row_that_cannot_be_read_stops_its_tenant_alone(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database
        .run(
            "SET SESSION sql_mode = '';
             ALTER TABLE outbox_message DROP COLUMN headers, MODIFY kind varchar(255) NULL;
             ALTER TABLE outbox_message ADD COLUMN headers longtext;
             INSERT INTO outbox_message (tenant_id, kind, subject_id, occurred_at, headers) VALUES
                 ('time', 'k', 's', '0000-00-00', NULL), ('subject', 'k', x'ff', now(), NULL),
                 ('headers', 'k', 's', now(), '[]'), ('json', 'k', 's', now(), 'no json'),
                 ('kind', NULL, 's', now(), NULL), (x'ff', 'k', 's', now(), NULL)",
        )
        .await;
    database.append(&table, &[message("well", "1"), message("\u{10ffff}", "1")]).await;
    let store = database.store(table.description());
    let hostile = [
        ("time", "occurred_at"),
        ("subject", "subject_id"),
        ("headers", "headers"),
        ("json", "headers"),
        ("kind", "kind"),
    ];
    for (id, (name, column)) in (1..).zip(hostile) {
        let error = refused(&store, name).await;
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        let says = format!("row {id} of outbox_message cannot be read: {column}");
        assert!(error.message().contains(&says), "{error}");
        assert!(store.pending(&tenant(name), 10.try_into().unwrap()).await.is_err());
    }
    for name in ["well", "\u{10ffff}"] {
        claim(&store, name).await.claim.settle(Settlement::release()).await.unwrap();
    }
    let found = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap().oldest;
    assert_eq!(found.len(), 7, "{found:?}");
    assert!(found.iter().all(|oldest| oldest.time.is_none() == (oldest.tenant_id.as_str() == "time")));
    database.drop().await;
}
