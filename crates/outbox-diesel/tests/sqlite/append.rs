//! Appending on every kind of connection that an application may have.

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, SqliteConnection};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use outbox_diesel::sqlite::SqliteTable;
use outbox_suite::sqlite::{FileDatabase, claim, ids, message, tenant};

use crate::driver::driver;

const ORDERS: &str = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL)";

diesel::table! {
    orders (id) {
        id -> BigInt,
        customer -> Text,
    }
}

/// Beside the application's own schema, in its transaction: committed together, rolled back together.
#[tokio::test]
async fn a_message_is_appended_in_a_transaction_of_a_synchronous_connection() {
    use diesel::{ExpressionMethods as _, QueryDsl as _, RunQueryDsl as _};
    let database = FileDatabase::new(driver()).await;
    let (acme, table) = (tenant("acme"), SqliteTable::new(database.table.clone()).expect("a table"));
    let mut connection =
        SqliteConnection::establish(&database.path().display().to_string()).expect("the database opens");
    connection.batch_execute(ORDERS).expect("a table of the application's");
    let order = |connection: &mut SqliteConnection| {
        diesel::insert_into(orders::table).values(orders::customer.eq("Ann")).execute(connection)
    };
    let written = connection
        .transaction(|connection| {
            order(connection)?;
            let one = table.append(&message(&acme, 0)).execute(connection)?;
            let many = table.append_all(&[message(&acme, 1), message(&acme, 2)]).execute(connection)?;
            Ok::<_, Box<dyn std::error::Error>>([vec![one], many].concat())
        })
        .expect("committed");
    let rolled_back = connection.transaction(|connection| {
        order(connection)?;
        table.append(&message(&acme, 3)).execute(connection)?;
        Err::<(), _>(Box::<dyn std::error::Error>::from("changed its mind"))
    });
    assert!(rolled_back.is_err());
    assert_eq!(ids(&claim(&database.store(), &acme).await), written);
    assert_eq!(orders::table.count().get_result::<i64>(&mut connection), Ok(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_appended_in_a_transaction_of_diesel_async() {
    let database = FileDatabase::new(driver()).await;
    let (acme, table) = (tenant("acme"), SqliteTable::new(database.table.clone()).expect("a table"));
    let url = database.path().display().to_string();
    let mut connection =
        SyncConnectionWrapper::<SqliteConnection>::establish(&url).await.expect("the database opens");
    connection.batch_execute("BEGIN IMMEDIATE").await.expect("begun");
    let one = table.append(&message(&acme, 0)).execute_async(&mut connection).await.expect("appended");
    let messages: Vec<_> = (1..400).map(|number| message(&acme, number)).collect();
    let many = table.append_all(&messages).execute_async(&mut connection).await.expect("appended");
    let store = database.store();
    let limit = std::num::NonZeroU32::new(1_000).expect("a limit");
    assert_eq!(store.pending(&acme, limit).await.expect("pending"), [], "not before the commit");
    connection.batch_execute("COMMIT").await.expect("committed");
    let pending: Vec<_> =
        store.pending(&acme, limit).await.expect("pending").iter().map(|message| message.id).collect();
    assert_eq!(pending, [vec![one], many].concat(), "in the order given");
}
