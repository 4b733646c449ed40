//! What a check finds, and what it is content with.

use std::time::Duration;

use outbox_sql::check::{Finding, Severity};
use outbox_sql::{Columns, OutboxTable};

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, LOOSE, errors, execute};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_check_finds_what_does_not_suit(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    assert_eq!(database.store().check().await.expect("a check"), []);
    execute(&database, LOOSE).await;
    let loose = errors(&database.store().check().await.expect("a check"));
    assert!(loose.contains("no AUTOINCREMENT") && loose.contains("has to be TEXT"), "{loose}");
    execute(
        &database,
        "CREATE INDEX i ON outbox_message (tenant_id COLLATE NOCASE, id) WHERE published_at IS NULL",
    )
    .await;
    assert!(errors(&database.store().check().await.expect("a check")).contains("not compared by bytes"));

    let plain = FileDatabase::new(driver).await;
    // An index of what was published is none of what is pending, and a word in a comment makes no difference.
    let published = "DROP INDEX outbox_message_pending; CREATE INDEX outbox_message_pending \
         ON outbox_message (tenant_id, id) WHERE published_at IS NOT NULL -- published_at IS NULL";
    execute(&plain, published).await;
    execute(&plain, "PRAGMA journal_mode = DELETE").await;
    let store = plain.store_as(&plain.open().busy(Duration::ZERO));
    let findings = store.check().await.expect("a check");
    let warnings: Vec<_> = findings.iter().map(ToString::to_string).collect();
    for expected in ["there is no index", "journal mode is delete", "busy timeout is 0"] {
        assert!(warnings.iter().any(|warning| warning.contains(expected)), "{expected}: {warnings:?}");
    }
    assert!(findings.iter().all(|finding| finding.severity == Severity::Warning));
}

/// Promise: a row that rolls back is never seen. Without a journal none does.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_journal_that_cannot_roll_back_is_an_error(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    execute(&database, "PRAGMA journal_mode = DELETE").await;
    let store = database.store_as(&database.open().setup("PRAGMA journal_mode = OFF"));
    assert!(errors(&store.check().await.expect("a check")).contains("the journal is off"));
}

/// What can break a promise though the table fits is found: an error where it does, a warning where it may.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn what_can_break_a_promise_is_found(driver: Driver) {
    let columns = "id INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL, kind TEXT NOT NULL, \
                   subject_id TEXT NOT NULL, payload BLOB, headers TEXT, occurred_at INTEGER NOT NULL";
    let make = |columns: &str| {
        format!(
            "DROP TABLE outbox_message; CREATE TABLE outbox_message ({columns}); \
             CREATE INDEX i ON outbox_message (tenant_id, id) WHERE published_at IS NULL"
        )
    };
    let trigger =
        |when: &str, body: &str| format!("CREATE TRIGGER t {when} ON outbox_message BEGIN {body}; END");
    for (breaks, severity, says) in [
        (make(&format!("{columns}, published_at INTEGER DEFAULT 0")), Severity::Error, "born marked"),
        (
            make(&format!("{columns}, published_at INTEGER GENERATED ALWAYS AS (1) VIRTUAL")),
            Severity::Error,
            "born marked",
        ),
        (
            make(&format!("{}, published_at INTEGER", columns.replace("AUTO", "ON CONFLICT REPLACE AUTO"))),
            Severity::Warning,
            "ON CONFLICT",
        ),
        (trigger("BEFORE UPDATE", "SELECT RAISE(IGNORE)"), Severity::Warning, "the trigger t"),
        (
            trigger("AFTER INSERT", "UPDATE outbox_message SET published_at = 1"),
            Severity::Warning,
            "the trigger t",
        ),
        (
            "INSERT INTO outbox_message VALUES (9, 'a', 'k', 's', NULL, NULL, 0, NULL); DELETE FROM sqlite_sequence"
                .to_owned(),
            Severity::Error,
            "the sequence of main.outbox_message is behind its rows (row 9)",
        ),
        (
            "INSERT INTO outbox_message VALUES (9, 'a', 'k', 's', NULL, NULL, 0, NULL); \
             UPDATE sqlite_sequence SET seq = 8"
                .to_owned(),
            Severity::Error,
            "is behind its rows (row 9)",
        ),
    ] {
        let database = FileDatabase::new(driver).await;
        execute(&database, &breaks).await;
        let found = database.store().check().await.expect("a check");
        let says = |finding: &&Finding| finding.severity == severity && finding.message.contains(says);
        assert!(found.iter().any(|finding| says(&finding)), "{breaks}: {found:#?}");
    }
    // What breaks nothing is not told of: here, an application that keeps count of its rows.
    let database = FileDatabase::new(driver).await;
    let count = "CREATE TABLE counted (id); INSERT INTO outbox_message VALUES (9, 'a', 'k', 's', NULL, NULL, 0, NULL)";
    execute(&database, &format!("{count}; {}", trigger("AFTER INSERT", "INSERT INTO counted VALUES (1)")))
        .await;
    assert_eq!(database.store().check().await.expect("a check"), []);
    let unsynchronized = database.store_as(&database.open().setup("PRAGMA synchronous = OFF"));
    let found = unsynchronized.check().await.expect("a check");
    assert!(found.len() == 1 && found[0].message.contains("synchronous is OFF"), "{found:#?}");
    let database = FileDatabase::new(driver).await;
    execute(&database, "PRAGMA journal_mode = DELETE").await;
    let in_memory = database.store_as(&database.open().setup("PRAGMA journal_mode = MEMORY"));
    let found = in_memory.check().await.expect("a check");
    assert!(found.len() == 1 && found[0].message.contains("the journal is in memory"), "{found:#?}");
}

/// The statement that the check proposes is one that it is content with.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_index_that_a_check_asks_for_is_the_one_that_it_finds(driver: Driver) {
    let mut columns = Columns::default();
    columns.tenant_id = "Ten ant".into();
    columns.published_at = "published \"at\"".into();
    let database = FileDatabase::with_table(driver, OutboxTable::new("out box").with_columns(columns)).await;
    execute(&database, "DROP INDEX \"out box_pending\"").await;
    let findings = database.store().check().await.expect("a check");
    let [finding] = &findings[..] else { panic!("one finding: {findings:?}") };
    let (_, statement) = finding.message.split_once("CREATE").expect("a statement");
    execute(&database, &format!("CREATE{statement}")).await;
    assert_eq!(database.store().check().await.expect("a check"), []);
}
