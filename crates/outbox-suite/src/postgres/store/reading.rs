//! Reading rows: hostile ones, bytes, times and what a request bounds.

use outbox_core::{NewMessage, ProbeRequest, Store, StoreErrorKind, Tenants, Timestamp};
use outbox_sql::{OutboxTable, PayloadType};

use crate::postgres::{Database, Driver};
use crate::server::{claim, ids, message, refused, request, tenant};

async fn insert(database: &Database, tenant: &str, columns: &str, values: &str) {
    database
        .run(format!(
            "INSERT INTO outbox_message (tenant_id, kind, subject_id, {columns}) VALUES ('{tenant}', 'k', 's', {values})"
        ))
        .await;
}

/// Each kind of hostile row stops its own tenant, by an error that names table, row, column and what is wrong; the
/// probe goes on, and the other tenants too.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn hostile_rows_stop_their_tenant_and_are_named(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database
        .run("ALTER TABLE outbox_message DROP CONSTRAINT outbox_message_headers_check, ALTER kind DROP NOT NULL")
        .await;
    insert(&database, "infinite", "occurred_at", "'infinity'").await;
    insert(&database, "past", "occurred_at", "'-infinity'").await;
    insert(&database, "far", "occurred_at", "'294276-12-31 23:59:59+00'").await;
    insert(&database, "array", "headers", "'[]'").await;
    insert(&database, "number", "headers", "'{\"a\": 1}'").await;
    insert(&database, "null", "headers", "'null'").await;
    database.run("INSERT INTO outbox_message (tenant_id, kind, subject_id) VALUES ('kind', NULL, 's')").await;
    let well = database.append(&table, &[message("well", "1")]).await;

    let store = database.store(table.description());
    for (tenant, wrong) in [
        ("infinite", "row 1 of public.outbox_message cannot be read: occurred_at is infinite"),
        ("past", "row 2 of public.outbox_message cannot be read: occurred_at is infinite"),
        ("far", "row 3 of public.outbox_message cannot be read: occurred_at is"),
        ("array", "row 4 of public.outbox_message cannot be read: headers is an array"),
        ("number", "row 5 of public.outbox_message cannot be read: headers has a number as \"a\""),
        ("null", "row 6 of public.outbox_message cannot be read: headers is a JSON null"),
        ("kind", "row 7 of public.outbox_message cannot be read: kind is null"),
    ] {
        let error = refused(&store, tenant).await;
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert!(error.message().contains(wrong), "{tenant}: {error}");
    }
    assert_eq!(ids(&claim(&store, "well").await), well);
    let oldest = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap().oldest;
    let unreadable: Vec<_> = oldest
        .iter()
        .filter(|oldest| oldest.time.is_none())
        .map(|oldest| oldest.tenant_id.as_str())
        .collect();
    assert_eq!((oldest.len(), unreadable), (8, vec!["far", "infinite", "past"]));
    database.drop().await;
}

/// The bytes of a request bound a batch, with at least one message, in every type of the payload.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_batch_is_bounded_in_bytes_and_never_empty(driver: Driver) {
    let database = Database::create(driver).await;
    for (name, payload) in
        [("bytes", PayloadType::Bytes), ("text", PayloadType::Text), ("json", PayloadType::Jsonb)]
    {
        let table = database.make(&OutboxTable::new(name).with_payload_type(payload)).await;
        let json = format!("\"{}\"", "x".repeat(1_000));
        database.append(&table, &vec![message("acme", &json); 10]).await;
        let store = database.store(table.description());
        for (max_bytes, expected) in [(0, 1), (1, 1), (2_500, 3), (usize::MAX, 10)] {
            let request = request("acme").with_max_bytes(max_bytes);
            let claimed = crate::claim(&store, &request).await;
            assert_eq!(claimed.messages.len(), expected, "{name}, {max_bytes} bytes");
            claimed.claim.settle(outbox_core::Settlement::release()).await.unwrap();
        }
        store.close().await;
    }
    database.drop().await;
}

/// Ten megabytes of every byte, and the ends of time, come back as written, whatever the session's settings.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn large_payloads_and_odd_times_come_back_as_written(driver: Driver) {
    let database = Database::create(driver).await;
    let settings = "SET timezone = 'Asia/Kathmandu'";
    database.run(format!("ALTER DATABASE {} {settings}", database.name)).await;
    database.run(format!("ALTER DATABASE {} SET datestyle = 'German, DMY'", database.name)).await;
    database.run(format!("ALTER DATABASE {} SET intervalstyle = 'sql_standard'", database.name)).await;
    database.admin.acquire().await.unwrap().detach();
    let table = database.make(&OutboxTable::default()).await;
    let large: Vec<u8> = (0..10 * 1024 * 1024_u32).map(|n| n.to_le_bytes()[0]).collect();
    let times = [-210_866_803_200_000_000, -1, 0, 1, 1_700_000_000_123_457, 9_223_371_244_799_999_999];
    let messages: Vec<NewMessage> = times
        .into_iter()
        .map(|micros| {
            NewMessage::new(tenant("acme"), "k", "s", large.clone())
                .with_occurred_at(Timestamp::from_micros(micros))
        })
        .collect();
    database.append(&table, &messages).await;
    let store = database.store(table.description());
    let claimed = claim(&store, "acme").await;
    assert_eq!(claimed.messages.len(), 2, "16 MiB are the default bound of a batch");
    assert!(claimed.messages[0].payload.as_ref().is_some_and(|payload| payload.as_bytes() == large));
    drop(claimed);
    let pending = store.pending(&tenant("acme"), 10.try_into().unwrap()).await.unwrap();
    assert_eq!(pending.iter().map(|message| message.occurred_at.as_micros()).collect::<Vec<_>>(), times);
    database.drop().await;
}
