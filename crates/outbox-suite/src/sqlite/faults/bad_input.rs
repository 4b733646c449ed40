//! Names, rows and databases that are not as they should be: correct work, or an error that says what to do.

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    ClaimOutcome, MessageId, NewMessage, ProbeRequest, Settlement, Store as _, StoreErrorKind, Tenants,
};
use outbox_sql::{Columns, InvalidMessage, InvalidTable, OutboxTable, PayloadType, TimeType};

use crate::sqlite::Driver;
use crate::sqlite::database::{
    FileDatabase, LOOSE, Open, claim, errors, execute, ids, message, request, tenant, try_claim,
};
use crate::{AppendError, BOUND, chain};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn names_with_quotes_capitals_keywords_and_spaces_work(driver: Driver) {
    let mut columns = Columns::default();
    columns.kind = "group".into();
    columns.subject_id = "Sub\"ject Id".into();
    for name in ["select", "Out\"box", "it's", "Nach richt", "é\u{301}", "a.b", &"x".repeat(64), "[t]", "`t`"]
    {
        let table = OutboxTable::new(name).with_columns(columns.clone());
        let database = FileDatabase::with_table(driver, table).await;
        let acme = tenant("acme");
        let written = database.commit(&acme, 2).await;
        let store = database.store();
        assert_eq!(store.check().await.expect("a check"), [], "{name}");
        let claimed = claim(&store, &acme).await;
        assert_eq!(ids(&claimed), written, "{name}");
        let oldest = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.expect("a probe").oldest;
        assert_eq!(oldest.len(), 1, "{name}");
        claimed.claim.settle(Settlement::published(written)).await.expect("settled");
        assert_eq!(database.marked().await, 2, "{name}");
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_table_in_an_attached_database_works(driver: Driver) {
    let (main, attached) = (FileDatabase::new(driver).await, FileDatabase::new(driver).await);
    let open = main.open().setup(format!("ATTACH '{}' AS \"Out Box\"", attached.path().display()));
    let table = OutboxTable::default().with_schema("Out Box");
    let acme = tenant("acme");
    let written = attached.commit(&acme, 1).await;
    let store = driver.store(&open, table);
    let claimed = claim(&store, &acme).await;
    assert_eq!(ids(&claimed), written);
    assert!(try_claim(&attached.store(), &acme).await.expect("a claim").is_none(), "one file, one lock");
    claimed.claim.settle(Settlement::published(written)).await.expect("settled");
    assert_eq!((attached.marked().await, main.marked().await), (1, 0));

    let nowhere = OutboxTable::default().with_schema("nowhere");
    let error = try_claim(&driver.store(&main.open(), nowhere), &acme).await;
    assert!(chain(&error.expect_err("not attached")).contains("attached as \"nowhere\""));
}

pub(crate) fn a_table_that_sqlite_cannot_hold_is_refused(driver: Driver) {
    let refused = |table: OutboxTable| driver.ddl(table).expect_err("no such table");
    assert!(matches!(refused(OutboxTable::new("")), InvalidTable::Name { .. }));
    assert!(matches!(refused(OutboxTable::new("a\0")), InvalidTable::Name { .. }));
    let millis = OutboxTable::default().with_time_type(TimeType::UtcMillis);
    assert!(matches!(refused(millis), InvalidTable::Unsupported { .. }));
    assert!(matches!(refused(OutboxTable::prisma("OutboxMessage")), InvalidTable::Unsupported { .. }));
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn what_the_table_cannot_hold_is_refused_at_the_append(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let mut application = database.application().await;
    let nul = NewMessage::new(acme.clone(), "kind", "sub\0ject", "x");
    let error = application.append_all(&database.table, &[message(&acme, 0), nul]).await.expect_err("a NUL");
    assert!(
        matches!(error, AppendError::Invalid { index: 1, reason: InvalidMessage::Nul { .. }, .. }),
        "{error}"
    );
    let mut columns = Columns::default();
    columns.headers = None;
    let none = OutboxTable::default().with_columns(columns);
    let with_header = message(&acme, 0).with_header("a", "b");
    let error = application.append(&none, &with_header).await;
    let reason = error.expect_err("no column for headers");
    assert!(matches!(reason, AppendError::Invalid { reason: InvalidMessage::NoHeadersColumn { .. }, .. }));
    assert!(claim(&database.store(), &acme).await.messages.is_empty(), "none of them was written");
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn thousands_of_messages_at_once_get_ids_in_their_order(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 2_000).await;
    assert!(written.len() == 2_000 && written.is_sorted_by(|a, b| a < b));
    let limit = NonZeroU32::new(2_000).expect("a limit");
    let pending = database.store().pending(&acme, limit).await.expect("pending");
    assert!(pending.iter().enumerate().all(|(n, row)| row.subject_id == format!("order-{n}")));
    let none = database.application().await.append_all(&database.table, &[]).await;
    assert!(none.expect("none").is_empty());
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_text_payload_column_keeps_text(driver: Driver) {
    let database =
        FileDatabase::with_table(driver, OutboxTable::default().with_payload_type(PayloadType::Text)).await;
    let acme = tenant("acme");
    database.commit(&acme, 1).await;
    let claimed = claim(&database.store(), &acme).await;
    let payload = claimed.messages[0].payload.as_ref().expect("a payload");
    assert_eq!(payload.as_str(), Ok("payload 0"));
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_missing_table_is_an_error_that_says_what_to_do(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let store = driver.store(&database.open(), OutboxTable::new("elsewhere"));
    let error = try_claim(&store, &tenant("acme")).await.expect_err("no table");
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(chain(&error).contains("create or migrate") && chain(&error).contains("elsewhere"), "{error}");
    assert!(errors(&store.check().await.expect("a check")).contains("there is no table main.elsewhere"));

    // The writer, too: in one line, without a walk through the causes.
    let table = OutboxTable::new("elsewhere");
    let mut application = database.application().await;
    let messages = [message(&tenant("acme"), 1), message(&tenant("acme"), 2)];
    let one = application.append(&table, &messages[0]).await.expect_err("no table");
    let many = application.append_all(&table, &messages).await.expect_err("no table");
    for error in [one, many] {
        assert!(error.to_string().contains("not appended: the statement does not fit"), "{error}");
        assert!(error.to_string().contains("create or migrate the outbox table"), "{error}");
    }
}

/// SQLite takes a quoted name that is no column for a text: it must not come to an empty outbox.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn each_missing_column_is_an_error_in_every_operation(driver: Driver) {
    let columns = Columns::default();
    for (part, column) in columns.named().filter(|(part, _)| *part != "id") {
        let database = FileDatabase::new(driver).await;
        let acme = tenant("acme");
        database.commit(&acme, 1).await;
        execute(&database, "DROP INDEX outbox_message_pending").await;
        execute(&database, &format!("ALTER TABLE outbox_message DROP COLUMN {column}")).await;
        let store = database.store();
        let error = try_claim(&store, &acme).await.expect_err(part);
        assert_eq!(error.kind(), StoreErrorKind::Permanent, "{part}");
        let pending = store.pending(&acme, NonZeroU32::MIN).await;
        assert!(chain(&pending.expect_err(part)).contains(column), "{part}");
        if ["tenant_id", "occurred_at", "published_at"].contains(&part) {
            store.probe(&ProbeRequest::new(Tenants::Discovered)).await.expect_err(part);
        }
        let found = errors(&store.check().await.expect("a check"));
        assert!(found.contains(&format!("the column {column:?} ({part}) is missing")), "{found}");
        assert!(!found.contains("check() says"), "a check does not send to itself: {found}");
        let mut application = database.application().await;
        let appended = application.append(&database.table, &message(&acme, 1)).await;
        assert_eq!(appended.is_err(), part != "published_at", "{part}");
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn each_hostile_row_stops_its_own_tenant_and_is_named(driver: Driver) {
    let hostile = [
        ("NULL, 's', 'p', NULL, 0", "kind is null"),
        ("1, 's', 'p', NULL, 0", "kind is of type integer"),
        ("x'ff', 's', 'p', NULL, 0", "kind is of type blob"),
        ("CAST(x'ff' AS TEXT), 's', 'p', NULL, 0", "kind is not a text"),
        ("'k', NULL, 'p', NULL, 0", "subject_id is null"),
        ("'k', 's', 1.5, NULL, 0", "payload is of type real"),
        ("'k', 's', 'p', '[]', 0", "headers is an array"),
        ("'k', 's', 'p', x'7b7d', 0", "headers is of type blob"),
        ("'k', 's', 'p', NULL, 'now'", "occurred_at is of type text"),
        ("'k', 's', 'p', NULL, NULL", "occurred_at is null"),
        ("'k', 's', 'p', NULL, 9e999", "occurred_at is of type real"),
    ];
    let database = FileDatabase::new(driver).await;
    execute(&database, LOOSE).await;
    // Tenants that nobody can ask for must not hide the others from the probe.
    for nobody in ["NULL", "''", "7", "x'00'", "CAST(x'ff' AS TEXT)"] {
        execute(
            &database,
            &format!("INSERT INTO outbox_message VALUES (NULL, {nobody}, 'k', 's', NULL, NULL, 0, NULL)"),
        )
        .await;
    }
    for (n, (row, _)) in hostile.iter().enumerate() {
        let id = 100 + n;
        execute(&database, &format!("INSERT INTO outbox_message VALUES ({id}, 'hostile-{n}', {row}, NULL)"))
            .await;
    }
    let acme = tenant("acme");
    execute(&database, "INSERT INTO outbox_message VALUES (1000, 'acme', 'k', 's', NULL, NULL, 0, NULL)")
        .await;
    let store = database.store();
    for (n, (_, reason)) in hostile.iter().enumerate() {
        let error = try_claim(&store, &tenant(&format!("hostile-{n}"))).await.expect_err(reason);
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert!(
            chain(&error).contains(&format!("row {} ", 100 + n)) && chain(&error).contains(reason),
            "{error}"
        );
    }
    let found = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.expect("a probe").oldest;
    assert_eq!(found.len(), hostile.len() + 1, "every tenant that there is: {found:?}");
    for oldest in &found {
        let unreadable = (108..=110).contains(&oldest.id.get());
        assert_eq!(oldest.time.is_none(), unreadable, "{oldest:?}");
    }
    let claimed = claim(&store, &acme).await;
    assert_eq!(ids(&claimed), [MessageId::new(1000)]);
    claimed.claim.settle(Settlement::published([MessageId::new(1000)])).await.expect("settled");
}

/// A batch's bound counts the bytes of a text, and not its characters up to the first NUL.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_text_with_a_nul_counts_whole(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    execute(&database, LOOSE).await;
    for id in 1..=5 {
        let row = "'acme', 'k', 's', CAST(zeroblob(1000) AS TEXT), NULL, 0, NULL";
        execute(&database, &format!("INSERT INTO outbox_message VALUES ({id}, {row})")).await;
    }
    let store = database.store();
    let outcome = store.claim(&request(&tenant("acme"), 10).with_max_bytes(2_500)).await;
    let Ok(ClaimOutcome::Claimed(claimed)) = outcome else { panic!("not claimed: {outcome:?}") };
    assert_eq!(claimed.messages.len(), 3);
}

/// A store that cannot mark must not hand anything out, however it comes to be read-only.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_read_only_database_fails_the_claim(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    database.commit(&acme, 1).await;
    let read_only = Open { read_only: true, ..database.open() };
    let pragma = database.open().setup("PRAGMA query_only = 1");
    for open in [read_only, pragma] {
        let store = database.store_as(&open);
        for _ in 0..2 {
            let error = try_claim(&store, &acme).await.expect_err("nothing could be marked");
            assert_eq!(error.kind(), StoreErrorKind::Permanent);
            assert!(chain(&error).contains("could be marked"), "{}", chain(&error));
        }
        assert!(!errors(&store.check().await.expect("a check")).is_empty());
        assert_eq!(store.pending(&acme, NonZeroU32::MIN).await.expect("reading works").len(), 1);
    }
    claim(&database.store(), &acme).await;
}

/// The proof that the database takes writes does not wait for a writer: a claim never waits.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_first_claim_does_not_wait_for_a_writer(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 1).await;
    let mut writer = database.connection().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut writer).await.expect("a write transaction");
    let store = database.store_as(&database.open().busy(Duration::from_mins(1)));
    let claimed = tokio::time::timeout(BOUND, claim(&store, &acme)).await.expect("it does not wait");
    assert_eq!(ids(&claimed), written);
}
