//! What a connection has beside the database is not taken for it.

use outbox_core::{MessageId, ProbeRequest, Settlement, Store, Tenants};

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, claim, ids, request, tenant, try_claim};

/// A connection's temporary tables come before a database's own, and so does a name that needs no schema.
const NAMESAKES: &str = "
    CREATE TEMP TABLE outbox_message (id INTEGER PRIMARY KEY, tenant_id, kind, subject_id, payload, headers,
                                      occurred_at, published_at);
    INSERT INTO temp.outbox_message VALUES (1, 'acme', 'k', 's', NULL, NULL, 0, NULL);
    CREATE TEMP TABLE json_each (value);
    CREATE TEMP TABLE pragma_database_list (name, file);
    INSERT INTO temp.pragma_database_list VALUES ('main', '/nowhere');
    CREATE TEMP TABLE pragma_query_only (query_only);
    INSERT INTO temp.pragma_query_only VALUES (1);
    ATTACH ':memory:' AS other;
    CREATE TABLE other.outbox_message AS SELECT * FROM temp.outbox_message;";

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn tables_of_a_connection_s_own_hide_nothing_of_the_database(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 3).await;
    let plain = database.store();
    let store = database.store_as(&database.open().setup(NAMESAKES));
    for tenants in [Tenants::Discovered, Tenants::Named([acme.clone()].into())] {
        let oldest = store.probe(&ProbeRequest::new(tenants)).await.expect("a probe").oldest;
        assert_eq!(oldest.iter().map(|oldest| oldest.id).collect::<Vec<_>>(), written[..1]);
        assert!(oldest[0].time.is_some_and(|time| time.age.as_secs() < 60), "of another table");
    }
    let held = claim(&store, &acme).await;
    assert_eq!(ids(&held), written);
    assert!(try_claim(&plain, &acme).await.expect("a claim").is_none(), "two relays hold one tenant");
    held.claim.settle(Settlement::published([written[0]])).await.expect("settled");
    assert_eq!(database.marked().await, 1);
    let others = request(&acme, 10).with_excluded_subjects(vec!["nobody".to_owned()]);
    let rest = crate::claim(&store, &others).await;
    let published: Vec<MessageId> = ids(&rest);
    assert_eq!(published, written[1..]);
    rest.claim.settle(Settlement::published(published)).await.expect("settled");
    assert_eq!(store.check().await.expect("checked"), []);
}
