//! Appending, and the table that ships.

use std::collections::BTreeSet;

use outbox_core::{MessageId, NewMessage, Timestamp};
use outbox_sqlx::mysql::MySqlTable;
use outbox_sqlx::{AppendError, InvalidMessage, OutboxTable};
use outbox_suite::mysql::{Database, WRITER};
use outbox_suite::of_any_server;
use outbox_suite::server::{claim, message, tenant};
use sqlx::migrate::Migrator;
use sqlx::mysql::MySqlPoolOptions;

use super::driver::driver;

/// Many appended at once have ids in the order given, and each id answered is that of its row, while others append
/// too, whatever a session's step is, and with a trigger on the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ids_answered_are_those_of_the_rows_under_concurrent_writers() {
    let database = Database::create(driver()).await;
    let table = database.make(&OutboxTable::default()).await;
    database
        .run(
            "CREATE TABLE audit (id bigint AUTO_INCREMENT PRIMARY KEY, subject varbinary(1024));
             CREATE TRIGGER audited AFTER INSERT ON outbox_message FOR EACH ROW
                 INSERT INTO audit (subject) VALUES (NEW.subject_id), (NEW.kind)",
        )
        .await;
    database.run(format!("GRANT INSERT ON {}.audit TO {WRITER}@'%'", database.name)).await;
    let writers = (1..=4).map(|step| {
        let (database, table) = (database.clone(), table.clone());
        tokio::spawn(async move {
            let pool =
                MySqlPoolOptions::new().max_connections(1).connect_lazy_with(database.options_of(WRITER));
            let mut appended = Vec::new();
            for round in 0..15 {
                let mut transaction = pool.begin().await.unwrap();
                let step = format!("SET SESSION auto_increment_increment = {step}");
                sqlx::raw_sql(sqlx::AssertSqlSafe(step.clone())).execute(&mut *transaction).await.unwrap();
                let rows: Vec<_> = (0..60)
                    .map(|place| NewMessage::new(tenant("acme"), "k", format!("{step} {round} {place}"), ""))
                    .collect();
                let ids = table.append_all(&mut transaction, &rows).await.unwrap();
                transaction.commit().await.unwrap();
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
    let store = database.store(table.description());
    let read = store.pending(&tenant("acme"), 10_000.try_into().unwrap()).await.unwrap();
    let read: BTreeSet<(MessageId, String)> = read.into_iter().map(|row| (row.id, row.subject_id)).collect();
    assert_eq!(read, expected);
    store.close().await;
    database.drop().await;
}

/// More rows, and more bytes, than one statement takes come back in the order given.
#[tokio::test]
async fn many_and_large_messages_are_appended_in_order() {
    let database = Database::create(driver()).await;
    let table = database.make(&OutboxTable::default()).await;
    let rows: Vec<_> = (0..1_203).map(|place| message("acme", &place.to_string())).collect();
    let ids = database.append(&table, &rows).await;
    let large: Vec<_> = (0..3).map(|place| message("acme", &place.to_string().repeat(1_500_000))).collect();
    let ids = [ids, database.append(&table, &large).await].concat();
    assert!(ids.is_sorted_by(|a, b| a < b));
    let store = database.store(table.description());
    let read = store.pending(&tenant("acme"), 10_000.try_into().unwrap()).await.unwrap();
    assert_eq!(read.iter().map(|row| row.id.get()).collect::<Vec<_>>(), ids);
    let payloads = rows.iter().chain(&large).map(|row| row.payload.clone());
    assert!(read.iter().map(|row| row.payload.clone()).eq(payloads));
    database.drop().await;
}

/// What cannot be held is refused with its place, before anything is sent, even where the server would cut it: the
/// transaction goes on. What fits exactly is held whole.
#[tokio::test]
async fn an_invalid_message_is_refused_and_the_longest_is_held_whole() {
    let database = Database::create(driver()).await;
    let table = database.make(&OutboxTable::default()).await;
    let mut transaction = database.admin.begin().await.unwrap();
    sqlx::raw_sql("SET SESSION sql_mode = ''").execute(&mut *transaction).await.unwrap();
    let mut bad = message("acme", "2");
    bad.kind = "k".repeat(256);
    let error = table.append_all(&mut transaction, &[message("acme", "1"), bad]).await.unwrap_err();
    let AppendError::Invalid { index: 1, reason: InvalidMessage::TooLong { part: "kind", .. } } = error
    else {
        panic!("{error:?}");
    };
    let longest = NewMessage::new(tenant(&"t".repeat(255)), "é".repeat(255), "s".repeat(1_024), "a\0b")
        .with_header("nul\0", "\0");
    table.append(&mut transaction, &longest).await.unwrap();
    transaction.commit().await.unwrap();
    let claimed = claim(&database.store(table.description()), longest.tenant_id.as_str()).await;
    let [read] = &claimed.messages[..] else { panic!("{claimed:?}") };
    assert_eq!((&read.kind, &read.subject_id), (&longest.kind, &longest.subject_id));
    assert_eq!((&read.payload, &read.headers), (&longest.payload, &longest.headers));
    drop(claimed);
    database.drop().await;
}

/// The camelCase table: what was written comes back; times of `datetime(3)` to the millisecond.
#[tokio::test]
async fn the_table_of_a_prisma_model_gives_back_what_was_written() {
    let database = Database::create(driver()).await;
    let table = database.make(&OutboxTable::prisma("OutboxMessage")).await;
    let time = Timestamp::from_micros(1_700_000_000_123_999);
    let written = [
        message("acme", "{\"é\":1,  \"a\":2}\u{1f980}").with_occurred_at(time),
        NewMessage::tombstone(tenant("acme"), "k", "s"),
    ];
    database.append(&table, &written).await;
    let store = database.store(table.description());
    let claimed = claim(&store, "acme").await;
    let [first, second] = &claimed.messages[..] else { panic!("{claimed:?}") };
    assert_eq!((&first.payload, &second.payload), (&written[0].payload, &None));
    assert_eq!(first.occurred_at.as_micros(), 1_700_000_000_123_000);
    assert_eq!(of_any_server(store.check().await.unwrap()), []);
    drop(claimed);
    database.drop().await;
}

/// The drop-in migration makes the tables of the default description, as the DDL does.
#[tokio::test]
async fn the_migration_is_the_ddl() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/mysql");
    let migrator = Migrator::new(folder).await.unwrap();
    let sql: Vec<_> = migrator.iter().map(|migration| migration.sql.as_str().to_owned()).collect();
    let table = MySqlTable::new(OutboxTable::default()).unwrap();
    assert_eq!(sql, [table.ddl()]);
    let database = Database::create(driver()).await;
    migrator.run(&database.admin).await.unwrap();
    database.append(&table, &[message("acme", "1")]).await;
    database.drop().await;
}
