//! The application's pool, lent to the store.

use outbox_core::{ClaimOutcome, Settlement, Store as _};
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use outbox_suite::sqlite::{FileDatabase, Open, claim, ids, message, polled, request, tenant};

use crate::driver::{self, driver};

/// Futures dropped at random awaits on a pool of one: what the application writes next on it is really there.
#[tokio::test]
async fn cancelled_futures_do_not_poison_a_pool_of_one() {
    let database = FileDatabase::new(driver()).await;
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let pool = driver::pool(&Open { connections: 1, ..database.open() });
    let store = SqliteStore::new(pool.clone(), database.table.clone()).expect("a table");
    let table = SqliteTable::new(database.table.clone()).expect("a table");
    let mut random = fastrand::Rng::with_seed(7);
    let mut there = 0;
    for round in 0..300 {
        database.commit(&acme, 1).await;
        let polls = random.usize(0..12);
        let whole = async {
            let Ok(ClaimOutcome::Claimed(mut claimed)) = store.claim(&request(&acme, 5)).await else {
                return;
            };
            let published = ids(&claimed);
            let _ = claimed.claim.verify().await;
            let _ = claimed.claim.settle(Settlement::published(published)).await;
        };
        polled(polls, whole).await;
        let mut connection = pool.acquire().await.expect("the pool has its connection");
        let message = message(&globex, round);
        table.append(&mut connection, &message).await.expect("the application's write");
        drop(connection);
        there += 1;
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox_message WHERE tenant_id = 'globex'")
            .fetch_one(&mut database.connection().await)
            .await
            .expect("counted by somebody else");
        assert_eq!(count, there, "the write of round {round} said OK and is not there");
        assert_eq!(pool.size(), 1);
    }
    claim(&store, &acme).await;
}
