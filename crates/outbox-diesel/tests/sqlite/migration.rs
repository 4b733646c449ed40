//! The migration and the `table!` that the crate ships.

use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use outbox_diesel::OutboxTable;
use outbox_diesel::sqlite::schema::outbox_message as messages;
use outbox_diesel::sqlite::{SqliteConnector, SqliteStore, SqliteTable};
use outbox_suite::sqlite::{claim, errors, ids, message, tenant};

const UP: &str = include_str!("../../migrations/sqlite/2026-01-01-000000_outbox_message/up.sql");
const DOWN: &str = include_str!("../../migrations/sqlite/2026-01-01-000000_outbox_message/down.sql");

type Row = (i64, String, String, String, Option<Vec<u8>>, Option<String>, i64, Option<i64>);

/// The drop-in migration makes the table of the default description, as the DDL does, and takes it away; `table!` is
/// that table, column by column.
#[tokio::test]
async fn the_migration_is_the_ddl_and_the_schema_is_its_table() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("app.db").display().to_string();
    let mut connection = SqliteConnection::establish(&path).expect("the database opens");
    let table = SqliteTable::new(OutboxTable::default()).expect("a table");
    assert_eq!(UP, table.ddl());
    // In a transaction, as Diesel runs it.
    connection.transaction(|connection| connection.batch_execute(UP)).expect("migrated");
    let columns = "SELECT group_concat(name || ' ' || type || iif(\"notnull\" OR pk, '', ' or null'), ', ')
                   FROM pragma_table_info('outbox_message')";
    let columns = diesel::dsl::sql::<diesel::sql_types::Text>(columns).get_result::<String>(&mut connection);
    assert_eq!(
        columns.expect("columns"),
        "id INTEGER, tenant_id TEXT, kind TEXT, subject_id TEXT, payload BLOB or null, headers TEXT or null, \
         occurred_at INTEGER, published_at INTEGER or null"
    );

    // Written by the crate and read by Diesel, and the other way round.
    let acme = tenant("acme");
    let first = table.append(&message(&acme, 1)).execute(&mut connection).expect("appended");
    let rows: Vec<Row> = messages::table.load(&mut connection).expect("read");
    let [(id, tenant, kind, subject, Some(payload), None, occurred_at, None)] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!((*id, &**tenant, &**kind, &**subject), (first.get(), "acme", "order.placed", "order-1"));
    assert_eq!((payload.as_slice(), *occurred_at > 0), (&b"payload 1"[..], true));
    diesel::insert_into(messages::table)
        .values((
            messages::tenant_id.eq("acme"),
            messages::kind.eq("order.placed"),
            messages::subject_id.eq("order-2"),
            messages::payload.eq(&b"\0\xff"[..]),
            messages::headers.eq(r#"{"a": "b"}"#),
        ))
        .execute(&mut connection)
        .expect("inserted");
    let store = SqliteStore::new(SqliteConnector::new(&path), OutboxTable::default()).expect("a table");
    assert_eq!(errors(&store.check().await.expect("a check")), "");
    let claimed = claim(&store, &acme).await;
    let second = &claimed.messages[1];
    assert_eq!(second.payload.as_ref().map(outbox_core::Payload::as_bytes), Some(&b"\0\xff"[..]));
    assert_eq!(second.headers.get("a"), Some("b"));
    let published = outbox_core::Settlement::published(ids(&claimed));
    claimed.claim.settle(published).await.expect("settled");
    let marked = messages::table.filter(messages::published_at.is_not_null()).count();
    assert_eq!(marked.get_result(&mut connection), Ok(2_i64));

    connection.batch_execute(DOWN).expect("taken away");
    messages::table.count().get_result::<i64>(&mut connection).expect_err("no table");
}
