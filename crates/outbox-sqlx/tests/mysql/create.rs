//! Making the tables if they are missing.

use outbox_sqlx::OutboxTable;
use outbox_sqlx::mysql::MySqlTable;
use outbox_suite::mysql::Database;

use super::driver::driver;

/// Many that start at once make one table of each kind; what is missing of them is made, and what is there and does
/// not suit is told of and stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_tables_are_made_once_and_those_that_are_there_are_left_alone() {
    let database = Database::create(driver()).await;
    let table = MySqlTable::new(OutboxTable::default()).unwrap();
    let makers: Vec<_> = (0..4)
        .map(|_| {
            let (table, pool) = (table.clone(), database.admin.clone());
            tokio::spawn(async move { table.create_if_missing(&mut pool.acquire().await.unwrap()).await })
        })
        .collect();
    for maker in makers {
        assert_eq!(maker.await.unwrap().unwrap(), []);
    }
    let mut connection = database.admin.acquire().await.unwrap();
    table.create(&mut connection).await.unwrap_err();
    for missing in
        ["DROP TABLE outbox_message_claims", "DELETE FROM outbox_message_claims", "DROP TABLE outbox_message"]
    {
        database.run(missing).await;
        assert_eq!(table.create_if_missing(&mut connection).await.unwrap(), [], "{missing}");
        assert_eq!(database.number("SELECT count(*) FROM outbox_message_claims").await, 1, "{missing}");
    }
    database.run("ALTER TABLE outbox_message MODIFY kind varchar(10) NOT NULL").await;
    let found = table.create_if_missing(&mut connection).await.unwrap();
    assert!(found.len() == 1 && found[0].message.contains("kind is varchar(10)"), "{found:?}");
    drop(connection);
    database.drop().await;
}
