//! Writing from `diesel-async`.

use std::collections::BTreeSet;
use std::error::Error;

use diesel::prelude::*;
use diesel_async::{AsyncConnection as _, AsyncMysqlConnection, SimpleAsyncConnection as _};
use outbox_core::{Inspect, MessageId, NewMessage, PendingRequest, Timestamp};
use outbox_diesel::mysql::MySqlTable;
use outbox_diesel::{AppendError, InvalidMessage, OutboxTable};
use outbox_suite::mysql::{Database, WRITER};
use outbox_suite::server::{message, tenant};

use crate::connect::url;
use crate::on_deadpool::driver;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

pub(crate) use schema::orders;

/// The application's own.
mod schema {
    diesel::table! {
        orders (id) {
            id -> BigInt,
            item -> Text,
        }
    }
}

pub(crate) const ORDERS: &str = "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, item text)";

pub(crate) fn table() -> MySqlTable {
    MySqlTable::new(OutboxTable::default()).unwrap()
}

pub(crate) fn story() -> Vec<NewMessage> {
    vec![
        NewMessage::new(tenant("acme"), "order.placed", "order-1", b"a\0\xff\x80")
            .with_header("traceparent", "00-é")
            .with_occurred_at(Timestamp::from_micros(1_700_000_000_123_456)),
        NewMessage::tombstone(tenant("acme"), "order.deleted", "order-2"),
        NewMessage::new(tenant("acme"), "ordre.passé", "é", "{}"),
    ]
}

/// What is pending, as a relay on sqlx reads it, is what was written.
pub(crate) async fn assert_is_story(database: &Database, ids: &[MessageId]) {
    let pool = database.admin.clone();
    let store = outbox_sqlx::mysql::MySqlStore::new(pool, OutboxTable::default()).unwrap();
    let read = store.pending(&PendingRequest::new(tenant("acme"), 100.try_into().unwrap())).await.unwrap();
    assert_eq!(read.iter().map(|message| message.id).collect::<Vec<_>>(), ids);
    for (message, written) in read.iter().zip(story()) {
        assert_eq!((&message.kind, &message.subject_id), (&written.kind, &written.subject_id));
        assert_eq!((&message.payload, &message.headers), (&written.payload, &written.headers));
        if let Some(time) = written.occurred_at {
            assert_eq!(message.occurred_at, time);
        }
    }
}

/// Beside the application's own table, in its transaction: what commits is there as written, what rolls back is not,
/// whatever the connection's character set is.
#[tokio::test]
async fn an_asynchronous_connection_appends_in_its_own_transaction() {
    for names in ["SET NAMES utf8mb4", "SET NAMES latin1"] {
        let database = Database::create(driver()).await;
        let table = table();
        database.run(table.ddl()).await;
        database.run(ORDERS).await;
        let mut connection = AsyncMysqlConnection::establish(&url(&database.options)).await.unwrap();
        connection.batch_execute(names).await.unwrap();
        let gone = connection.transaction::<(), diesel::result::Error, _>(async |connection| {
            table.append(&message("acme", "never")).execute_async(connection).await.unwrap();
            Err(diesel::result::Error::RollbackTransaction)
        });
        gone.await.unwrap_err();
        let ids = connection.transaction::<_, Failure, _>(async |connection| {
            let order = diesel::insert_into(orders::table).values(orders::item.eq("book"));
            diesel_async::RunQueryDsl::execute(order, connection).await?;
            let story = story();
            let mut ids = vec![table.append(&story[0]).execute_async(connection).await?];
            ids.extend(table.append_all(&story[1..]).execute_async(connection).await?);
            assert_eq!(table.append_all(&[]).execute_async(connection).await?, []);
            Ok(ids)
        });
        assert_is_story(&database, &ids.await.unwrap()).await;
        assert_eq!(database.number("SELECT count(*) FROM orders").await, 1);
        database.drop().await;
    }
}

/// Many appended at once have ids in the order given, and each id answered is that of its row, while others append
/// too, whatever a session's step is, and with a trigger on the table that inserts elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ids_answered_are_those_of_the_rows_under_concurrent_writers() {
    let database = Database::create(driver()).await;
    let made = database.make(&OutboxTable::default()).await;
    database
        .run(
            "CREATE TABLE audit (id bigint AUTO_INCREMENT PRIMARY KEY, subject varbinary(1024));
             CREATE TRIGGER audited AFTER INSERT ON outbox_message FOR EACH ROW
                 INSERT INTO audit (subject) VALUES (NEW.subject_id), (NEW.kind)",
        )
        .await;
    database.run(format!("GRANT INSERT ON {}.audit TO {WRITER}@'%'", database.name)).await;
    let writers = (1..=4).map(|step| {
        let url = url(&database.options_of(WRITER));
        tokio::spawn(async move {
            let table = table();
            let mut connection = AsyncMysqlConnection::establish(&url).await.unwrap();
            let setting = format!("SET SESSION auto_increment_increment = {step}");
            connection.batch_execute(&setting).await.unwrap();
            let mut appended = Vec::new();
            for round in 0..15 {
                let rows: Vec<_> = (0..60)
                    .map(|place| NewMessage::new(tenant("acme"), "k", format!("{step} {round} {place}"), ""))
                    .collect();
                let ids = table.append_all(&rows).execute_async(&mut connection).await.unwrap();
                assert!(ids.is_sorted());
                appended.extend(ids.into_iter().zip(rows.into_iter().map(|row| row.subject_id)));
            }
            appended
        })
    });
    let mut expected = BTreeSet::new();
    for writer in writers.collect::<Vec<_>>() {
        expected.extend(writer.await.unwrap());
    }
    assert_eq!(expected.len(), 4 * 15 * 60, "an id was answered twice");
    let store = database.store(made.description());
    let read = store.pending(&tenant("acme"), 10_000.try_into().unwrap()).await.unwrap();
    let read: BTreeSet<(MessageId, String)> = read.into_iter().map(|row| (row.id, row.subject_id)).collect();
    assert_eq!(read, expected);
    database.drop().await;
}

/// What cannot be held is refused with its place, before anything is sent: the transaction goes on. What the database
/// refuses is said with what to do about it, and with Diesel's own error.
#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let database = Database::create(driver()).await;
    let table = table();
    let mut root = AsyncMysqlConnection::establish(&url(&database.options)).await.unwrap();
    let missing = table.append(&message("acme", "1")).execute_async(&mut root).await.unwrap_err();
    assert!(missing.to_string().contains("create outbox_message"), "{missing}");
    assert!(missing.source().unwrap().is::<diesel::result::Error>());
    database.make(&OutboxTable::default()).await;
    let mut bad = message("acme", "2");
    bad.kind = "k".repeat(256);
    let error = table.append_all(&[message("acme", "1"), bad]).execute_async(&mut root).await.unwrap_err();
    let AppendError::Invalid { index: 1, reason: InvalidMessage::TooLong { part: "kind", .. } } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(database.number("SELECT count(*) FROM outbox_message").await, 0);
    let mut writer = AsyncMysqlConnection::establish(&url(&database.options_of(WRITER))).await.unwrap();
    database.run(format!("REVOKE INSERT ON {}.outbox_message FROM {WRITER}@'%'", database.name)).await;
    let denied = table.append(&message("acme", "1")).execute_async(&mut writer).await.unwrap_err();
    assert!(denied.to_string().contains("grant INSERT on outbox_message"), "{denied}");
    database.drop().await;
}

/// What `table!` says of a row: id, tenant, kind, subject, payload, headers.
type Row = (i64, Vec<u8>, String, Vec<u8>, Option<Vec<u8>>, Option<String>);

/// The drop-in migration makes the tables of the default description, as the DDL does, and takes them away; `table!` is
/// the table, column by column.
#[tokio::test]
async fn the_migration_is_the_ddl_and_the_schema_is_its_table() {
    use outbox_diesel::mysql::schema::outbox_message as messages;
    const UP: &str = include_str!("../../migrations/mysql/2026-01-01-000000_outbox_message/up.sql");
    const DOWN: &str = include_str!("../../migrations/mysql/2026-01-01-000000_outbox_message/down.sql");
    let table = table();
    assert_eq!(UP, table.ddl());
    let database = Database::create(driver()).await;
    let mut connection = AsyncMysqlConnection::establish(&url(&database.options)).await.unwrap();
    connection.batch_execute(UP).await.unwrap();
    let message = message("acme", "1").with_header("a", "b");
    let written = table.append(&message).execute_async(&mut connection).await.unwrap();
    let query = messages::table
        .filter(messages::published_at.is_null().and(messages::occurred_at.is_not_null()))
        .select((
            messages::id,
            messages::tenant_id,
            messages::kind,
            messages::subject_id,
            messages::payload,
            messages::headers,
        ));
    let read = diesel_async::RunQueryDsl::load(query, &mut connection).await;
    let read: Vec<Row> = read.unwrap();
    let row = (
        written.get(),
        b"acme".to_vec(),
        "kind".to_owned(),
        b"subject".to_vec(),
        Some(b"1".to_vec()),
        Some("{\"a\":\"b\"}".to_owned()),
    );
    let unspaced = read.into_iter().map(|mut row| {
        row.5 = row.5.map(|headers| headers.replace(' ', ""));
        row
    });
    assert_eq!(unspaced.collect::<Vec<_>>(), [row]);
    let columns =
        "SELECT group_concat(concat(COLUMN_NAME, ' ', DATA_TYPE) ORDER BY ORDINAL_POSITION SEPARATOR ', ')
         FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = database() AND TABLE_NAME = 'outbox_message'";
    let types = database.text(columns).await.replace(" json", " longtext");
    assert_eq!(
        types,
        "id bigint, tenant_id varbinary, kind varchar, subject_id varbinary, payload longblob, headers longtext, \
         occurred_at datetime, published_at datetime"
    );
    connection.batch_execute(DOWN).await.unwrap();
    assert_eq!(
        database
            .number("SELECT count(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = database()")
            .await,
        0
    );
    database.drop().await;
}
