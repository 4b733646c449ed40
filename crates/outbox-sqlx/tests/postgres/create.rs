//! Making the table if it is missing.

use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::PostgresTable;
use outbox_suite::postgres::Database;

use super::driver::driver;

/// Many that start at once make one table; a table that does not suit is told of and stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_table_is_made_once_and_one_that_is_there_is_left_alone() {
    let database = Database::create(driver()).await;
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    let makers: Vec<_> = (0..4)
        .map(|_| {
            let (table, pool) = (table.clone(), database.admin.clone());
            tokio::spawn(async move { table.create_if_missing(&mut pool.acquire().await.unwrap()).await })
        })
        .collect();
    for maker in makers {
        assert_eq!(maker.await.unwrap().unwrap(), []);
    }
    assert_eq!(
        database.number("SELECT count(*) FROM pg_index WHERE indrelid = 'outbox_message'::regclass").await,
        2
    );
    let mut connection = database.admin.acquire().await.unwrap();
    table.create(&mut connection).await.unwrap_err();
    database
        .run("ALTER TABLE outbox_message ALTER kind DROP NOT NULL, ALTER payload TYPE text USING NULL")
        .await;
    let found = table.create_if_missing(&mut connection).await.unwrap();
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert!(found.len() == 2 && found.iter().any(|finding| finding.contains("payload is text")), "{found:?}");

    database.run("DROP TABLE outbox_message").await;
    let mut transaction = database.admin.begin().await.unwrap();
    assert_eq!(table.create_if_missing(&mut transaction).await.unwrap(), []);
    transaction.rollback().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM pg_class WHERE relname = 'outbox_message'").await, 0);
    drop(connection);
    database.drop().await;
}
