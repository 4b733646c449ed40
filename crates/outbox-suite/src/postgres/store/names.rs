//! Names that need quotes, and names that cannot be.

use outbox_core::{MessageId, ProbeRequest, Settlement, Store, Tenants};
use outbox_sql::{Columns, InvalidTable, OutboxTable};
use outbox_sqlx::postgres::PostgresTable;

use crate::postgres::{Database, Driver, ROLE};
use crate::server::{claim, ids, message, tenant};

/// Appends, reads, probes, claims and settles on a table of these names.
async fn works(database: &Database, table: &OutboxTable) {
    let live = database.make(table).await;
    let written = database.append(&live, &[message("acme", "1"), message("acme", "2")]).await;
    let store = database.store(table);
    let claimed = claim(&store, "acme").await;
    assert_eq!(ids(&claimed), written, "{table:?}");
    claimed.claim.settle(Settlement::published([MessageId::new(written[0])])).await.unwrap();
    let pending = store.pending(&tenant("acme"), 10.try_into().unwrap()).await.unwrap();
    assert_eq!(pending.len(), 1);
    let oldest = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap().oldest;
    assert_eq!(oldest[0].id.get(), written[1]);
    assert_eq!(store.check().await.unwrap(), []);
    store.close().await;
}

/// Quotes, capitals, spaces, keywords, backslashes, dots, placeholders and names of 63 bytes are names like others.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn names_that_need_quotes_work(driver: Driver) {
    let database = Database::create(driver).await;
    let longest = "é".repeat(31) + "x";
    assert_eq!(longest.len(), 63);
    for name in ["My Table", "select", "a\"b", "it's", "back\\slash", "a.b", "$1", "%I", "oldest", &longest] {
        works(&database, &OutboxTable::new(name)).await;
    }
    for schema in ["My-Schema", "select", "a\"b'c", &longest] {
        let quoted = schema.replace('"', "\"\"");
        database
            .run(format!("CREATE SCHEMA \"{quoted}\"; GRANT USAGE ON SCHEMA \"{quoted}\" TO {ROLE}"))
            .await;
        works(&database, &OutboxTable::new("select").with_schema(schema)).await;
    }
    database.drop().await;
}

/// So are the columns' names, even those of other columns and of the statements' own words.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn columns_that_need_quotes_work(driver: Driver) {
    let database = Database::create(driver).await;
    let mut odd = Columns::default();
    odd.id = "tenant".into();
    odd.tenant_id = "id".into();
    odd.kind = "a\"b".into();
    odd.subject_id = "order".into();
    odd.payload = "micros".into();
    odd.headers = Some("place".into());
    odd.occurred_at = "My Time".into();
    odd.published_at = "é".repeat(31);
    works(&database, &OutboxTable::new("t").with_columns(odd)).await;
    database.drop().await;
}

/// A name that PostgreSQL would cut, or cannot hold, is refused before anything is sent.
pub(crate) fn names_that_cannot_be_are_refused(_: Driver) {
    let (longest, too_long) = ("x".repeat(63), "x".repeat(64));
    assert!(PostgresTable::new(OutboxTable::new(longest)).is_ok());
    for name in [too_long.as_str(), "", "a\0b"] {
        for table in [OutboxTable::new(name), OutboxTable::default().with_schema(name)] {
            let refused = PostgresTable::new(table).unwrap_err();
            assert!(matches!(refused, InvalidTable::Name { .. }), "{refused}");
        }
    }
}
