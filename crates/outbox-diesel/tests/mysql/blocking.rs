//! Writing from a synchronous connection: one of `diesel-async` in blocking calls, which needs no library written in C.

use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel_async::AsyncMysqlConnection;
use diesel_async::async_connection_wrapper::AsyncConnectionWrapper;
use outbox_suite::mysql::Database;
use outbox_suite::server::message;

use crate::append::{Failure, ORDERS, assert_is_story, orders, story, table};
use crate::connect::url;
use crate::on_deadpool::driver;

type Blocking = AsyncConnectionWrapper<AsyncMysqlConnection>;

/// Beside the application's own table, in its transaction: what commits is there as written, what rolls back is not.
#[tokio::test]
async fn a_synchronous_connection_appends_in_its_own_transaction() {
    let database = Database::create(driver()).await;
    let url = url(&database.options);
    let ids = tokio::task::spawn_blocking(move || {
        let table = table();
        let mut connection = Blocking::establish(&url).unwrap();
        connection.batch_execute(&table.ddl()).unwrap();
        connection.batch_execute(ORDERS).unwrap();
        let gone = connection.transaction(|connection| {
            table.append(&message("acme", "never")).execute(connection).unwrap();
            Err::<(), _>(diesel::result::Error::RollbackTransaction)
        });
        gone.unwrap_err();
        let ids = connection.transaction::<_, Failure, _>(|connection| {
            diesel::insert_into(orders::table).values(orders::item.eq("book")).execute(connection)?;
            let story = story();
            let mut ids = vec![table.append(&story[0]).execute(connection)?];
            ids.extend(table.append_all(&story[1..]).execute(connection)?);
            assert_eq!(table.append_all(&[]).execute(connection)?, []);
            Ok(ids)
        });
        assert_eq!(orders::table.count().get_result(&mut connection), Ok(1));
        ids.unwrap()
    });
    assert_is_story(&database, &ids.await.unwrap()).await;
    database.drop().await;
}
