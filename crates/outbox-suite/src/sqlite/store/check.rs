//! What a check finds, and what it is content with.

use std::time::Duration;

use outbox_sql::check::Severity;
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
