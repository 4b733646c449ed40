//! Appending, and the table that ships.

use outbox_core::{NewMessage, Store, Timestamp};
use outbox_sqlx::{AppendError, InvalidMessage, OutboxTable, PayloadType};
use outbox_suite::postgres::Database;
use outbox_suite::server::{claim, message, tenant};
use sqlx::migrate::Migrator;

use super::driver::driver;

/// What cannot be held is refused with its place, before anything is sent: the transaction goes on.
#[tokio::test]
async fn an_invalid_message_leaves_the_transaction_usable() {
    let database = Database::create(driver()).await;
    let table = database.make(&OutboxTable::default()).await;
    let mut transaction = database.admin.begin().await.unwrap();
    let bad = message("acme", "2").with_header("trace\0", "x");
    let error = table.append_all(&mut transaction, &[message("acme", "1"), bad]).await.unwrap_err();
    let AppendError::Invalid { index: 1, reason: InvalidMessage::Nul { part: "header" } } = error else {
        panic!("{error:?}");
    };
    table.append(&mut transaction, &message("acme", "a\0b")).await.unwrap();
    transaction.commit().await.unwrap();
    let claimed = claim(&database.store(table.description()), "acme").await;
    assert_eq!(claimed.messages[0].payload.as_ref().unwrap().as_bytes(), b"a\0b");
    drop(claimed);

    let text = database.make(&OutboxTable::prisma("OutboxMessage")).await;
    let mut connection = database.admin.acquire().await.unwrap();
    for (message, expected) in [
        (message("acme", "a\0b"), "the payload contains a NUL"),
        (NewMessage::new(tenant("acme"), "k", "s", b"\xff"), "the payload is not UTF-8"),
        (message("acme", "").with_header("a", "b"), "has headers"),
        (message(&"t".repeat(2_601), ""), "2601 bytes"),
    ] {
        let error = text.append(&mut connection, &message).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    drop(connection);
    database.drop().await;
}

/// The longest tenant that is let in fits the index, even if it does not compress.
#[tokio::test]
async fn the_longest_tenant_fits_the_index() {
    let database = Database::create(driver()).await;
    let table = database.make(&OutboxTable::default()).await;
    let mut seed = 1_u64;
    let noise: String = (0..2_600)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + u8::try_from((seed >> 33) % 94).unwrap())
        })
        .collect();
    database.append(&table, &[message(&noise, "1")]).await;
    assert_eq!(claim(&database.store(table.description()), &noise).await.messages.len(), 1);
    database.drop().await;
}

/// Both presets, and JSON: what was written comes back; times of `timestamp(3)` to the millisecond, as UTC.
#[tokio::test]
async fn every_kind_of_table_gives_back_what_was_written() {
    let database = Database::create(driver()).await;
    database.run(format!("ALTER DATABASE {} SET timezone = 'Asia/Kathmandu'", database.name)).await;
    for (table, payload) in [
        (OutboxTable::default(), "{\"b\":1,  \"a\":2}"),
        (OutboxTable::prisma("OutboxMessage"), "{\"b\":1,  \"a\":2}"),
        (OutboxTable::new("json").with_payload_type(PayloadType::Jsonb), "{\"a\": 2, \"b\": 1}"),
    ] {
        let table = database.make(&table).await;
        let time = Timestamp::from_micros(1_700_000_000_123_000);
        let tombstone = NewMessage::tombstone(tenant("acme"), "k", "s");
        let written = [message("acme", payload).with_occurred_at(time), tombstone];
        database.append(&table, &written).await;
        let store = database.store(table.description());
        let claimed = claim(&store, "acme").await;
        let [first, second] = &claimed.messages[..] else { panic!("{claimed:?}") };
        assert_eq!(first.payload.as_ref().unwrap().as_str(), Ok(payload));
        assert_eq!((first.occurred_at, &second.payload), (time, &None));
        let probe = outbox_core::ProbeRequest::new(outbox_core::Tenants::Discovered);
        let age = store.probe(&probe).await.unwrap().oldest[0].time.unwrap().age;
        let now = database.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").await;
        assert!(
            age.as_micros().abs_diff(u128::try_from(now - time.as_micros()).unwrap()) < 60_000_000,
            "{age:?}"
        );
        let micros = second.occurred_at.as_micros();
        assert!(micros.abs_diff(now) < 60_000_000, "the server's own time, as UTC: {micros}");
        drop(claimed);
        store.close().await;
    }
    database.drop().await;
}

/// The drop-in migration makes the table of the default description, as the DDL does.
#[tokio::test]
async fn the_migration_is_the_ddl() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/postgres");
    let migrator = Migrator::new(folder).await.unwrap();
    let sql: Vec<_> = migrator.iter().map(|migration| migration.sql.as_str().to_owned()).collect();
    let table = outbox_sqlx::postgres::PostgresTable::new(OutboxTable::default()).unwrap();
    assert_eq!(sql, [table.ddl()]);
    let database = Database::create(driver()).await;
    migrator.run(&database.admin).await.unwrap();
    database.append(&table, &[message("acme", "1")]).await;
    database.drop().await;
}
