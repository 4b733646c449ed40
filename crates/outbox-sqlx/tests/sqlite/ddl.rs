//! The DDL, run with names that try to say something else: the database has our table and its index, and nothing
//! is gone.

use outbox_sql::{Columns, OutboxTable};
use outbox_sqlx::sqlite::SqliteTable;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

/// What there is beside SQLite's own tables, by name.
async fn objects(connection: &mut SqliteConnection) -> Vec<(String, String)> {
    let all = "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name";
    sqlx::query_as(all).fetch_all(connection).await.expect("the schema")
}

async fn run(name: &str, column: &str) -> Result<(), TestCaseError> {
    let mut columns = Columns::default();
    columns.published_at = column.to_owned();
    columns.headers = Some(format!("{column} too"));
    let Ok(table) = SqliteTable::new(OutboxTable::new(name).with_columns(columns)) else { return Ok(()) };
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    sqlx::raw_sql("CREATE TABLE victim (id)").execute(&mut connection).await.expect("a table of others");
    // Names that SQLite keeps to itself make it fail, and nothing else.
    let made = sqlx::raw_sql(AssertSqlSafe(table.ddl())).execute(&mut connection).await;
    let mut expected = vec![("table".to_owned(), "victim".to_owned())];
    if made.is_ok() {
        expected.push(("index".to_owned(), format!("{name}_pending")));
        expected.push(("table".to_owned(), name.to_owned()));
    }
    expected.sort();
    prop_assert_eq!(objects(&mut connection).await, expected, "{:?}, {:?}", name, column);
    Ok(())
}

/// Promise: a name is a name. None makes the DDL run a second statement.
#[test]
fn no_name_makes_the_ddl_run_another_statement() {
    let part = prop_oneof![
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("\"".to_owned()),
        Just("\");".to_owned()),
        Just("DROP TABLE victim;".to_owned()),
        Just("CREATE TABLE x (y);".to_owned()),
        Just("-- ".to_owned()),
        Just("/*".to_owned()),
        any::<char>().prop_map(String::from),
        "[a-z]{1,4}",
    ];
    let name = prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(500) });
    runner
        .run(&(name.clone(), name), |(name, column)| runtime.block_on(run(&name, &column)))
        .expect("our objects and no others");
    let line_break = run("outbox", "x\nDROP TABLE victim; --");
    runtime.block_on(line_break).expect("our objects and no others");
}
