//! What the pages of `docs/` advise, tried.

use outbox_core::{Inspect as _, PendingRequest, Settlement};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::{PostgresStore, PostgresTable};
use outbox_suite::of_any_server;
use outbox_suite::postgres::Database;
use outbox_suite::server::{claim, ids, message, tenant};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::driver::driver;

/// `docs/ordering.md`: writers that lock their subject first and append then draw its ids in the order of their
/// commits; the second one waits without having drawn.
#[tokio::test]
async fn who_locks_the_subject_first_draws_ids_in_commit_order() {
    let database = Database::create(driver()).await;
    let table = database.make(&OutboxTable::default()).await;
    database
        .run("CREATE TABLE orders (number int PRIMARY KEY, status text); INSERT INTO orders VALUES (1)")
        .await;
    let lock = "UPDATE orders SET status = 'shipped' WHERE number = 1";

    let mut first = database.admin.begin().await.unwrap();
    sqlx::query(lock).execute(&mut *first).await.unwrap();
    let second = tokio::spawn({
        let (pool, table) = (database.admin.clone(), table.clone());
        async move {
            let mut second = pool.begin().await.unwrap();
            sqlx::query(lock).execute(&mut *second).await.unwrap();
            let id = table.append(&mut second, &message("acme", "second")).await.unwrap();
            second.commit().await.unwrap();
            id
        }
    });
    database
        .wait_until(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
             AND wait_event_type = 'Lock')",
        )
        .await;
    // It was later to ask and is earlier to draw.
    let id = table.append(&mut first, &message("acme", "first")).await.unwrap();
    first.commit().await.unwrap();
    assert!(id < second.await.unwrap());
    database.drop().await;
}

/// `docs/schema.md`: these privileges are enough for the writer and for the relay.
#[tokio::test]
async fn the_documented_privileges_are_enough() {
    let database = Database::create(driver()).await;
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    table.create(&mut database.admin.acquire().await.unwrap()).await.unwrap();
    let (writer, relay) = (format!("{}_writer", database.name), format!("{}_relay", database.name));
    database
        .run(format!(
            "CREATE ROLE {writer}; CREATE ROLE {relay};
             GRANT INSERT, SELECT (id) ON outbox_message TO {writer};
             GRANT SELECT, UPDATE (published_at) ON outbox_message TO {relay}"
        ))
        .await;
    let pool = |role: &str| -> PgPool {
        let options = database.options.clone().options([("role", role)]);
        PgPoolOptions::new().max_connections(2).connect_lazy_with(options)
    };
    let (writing, relaying) = (pool(&writer), pool(&relay));

    let mut transaction = writing.begin().await.unwrap();
    let appended = table.append(&mut transaction, &message("acme", "1")).await.unwrap();
    transaction.commit().await.unwrap();

    let store = PostgresStore::new(relaying.clone(), OutboxTable::default()).unwrap();
    assert_eq!(of_any_server(store.check().await.unwrap()), []);
    let claimed = claim(&store, "acme").await;
    assert_eq!(ids(&claimed), [appended.get()]);
    claimed.claim.settle(Settlement::published([appended])).await.unwrap();
    assert!(
        store.pending(&PendingRequest::new(tenant("acme"), 1.try_into().unwrap())).await.unwrap().is_empty()
    );

    writing.close().await;
    relaying.close().await;
    database.run(format!("DROP OWNED BY {writer}, {relay}; DROP ROLE {writer}, {relay}")).await;
    database.drop().await;
}
