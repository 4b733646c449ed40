//! Making the table if it is missing.

use outbox_sqlx::OutboxTable;
use outbox_sqlx::sqlite::SqliteTable;
use sqlx::{Connection as _, SqliteConnection};

/// A table that somebody made without our types.
const LOOSE: &str = "DROP TABLE outbox_message; CREATE TABLE outbox_message (id INTEGER PRIMARY KEY, tenant_id, \
     kind, subject_id, payload, headers, occurred_at, published_at)";

/// Twice is once, a table that does not suit is told of and stays, and what is there stays.
#[tokio::test]
async fn a_missing_table_is_made_and_one_that_is_there_is_left_alone() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    let table = SqliteTable::new(OutboxTable::default()).expect("a table");
    for _ in 0..2 {
        assert_eq!(table.create_if_missing(&mut connection).await.expect("made, or there"), []);
    }
    let row = "INSERT INTO outbox_message (tenant_id, kind, subject_id) VALUES ('acme', 'k', 's')";
    sqlx::raw_sql(row).execute(&mut connection).await.expect("a row");
    assert_eq!(table.create_if_missing(&mut connection).await.expect("there"), []);
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox_message")
        .fetch_one(&mut connection)
        .await
        .expect("counted");
    assert_eq!(rows, 1);
    table.create(&mut connection).await.expect_err("create() says that it is there");

    sqlx::raw_sql(LOOSE).execute(&mut connection).await.expect("a table of others");
    let before: String = sqlx::query_scalar("SELECT sql FROM sqlite_schema WHERE name = 'outbox_message'")
        .fetch_one(&mut connection)
        .await
        .expect("its definition");
    let found = table.create_if_missing(&mut connection).await.expect("there");
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|finding| finding.contains("no AUTOINCREMENT")), "{found:?}");
    let after: String = sqlx::query_scalar("SELECT sql FROM sqlite_schema WHERE name = 'outbox_message'")
        .fetch_one(&mut connection)
        .await
        .expect("its definition");
    assert_eq!(before, after);
}

/// In a transaction of the application's it is made with it, or not.
#[tokio::test]
async fn a_table_made_in_a_transaction_goes_with_it() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    let table = SqliteTable::new(OutboxTable::default()).expect("a table");
    let mut transaction = connection.begin().await.expect("a transaction");
    assert_eq!(table.create_if_missing(&mut transaction).await.expect("made"), []);
    transaction.rollback().await.expect("rolled back");
    assert_eq!(table.create_if_missing(&mut connection).await.expect("made again"), []);
}
