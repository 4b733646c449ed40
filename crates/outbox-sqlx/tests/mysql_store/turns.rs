//! The tenant's row among the claims: who has it, who adds it, and who must not wait.

use std::time::{Duration, Instant};

use outbox_core::{ClaimOutcome, Settlement, Store, StoreErrorKind};
use outbox_sqlx::OutboxTable;

use super::support::{Database, STORE, claim, freed, is_held, message, refused, request};

/// Two replicas meet a tenant that has no row yet: one gets it, the other is told at once that it is held, and
/// nobody waits for the other's batch. Again and again, with a new tenant each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_meet_a_tenant_without_a_row_do_not_wait_for_each_other_s_batch() {
    let database = Database::create().await;
    let table = database.make(&OutboxTable::default()).await;
    let stores: Vec<_> = (0..4).map(|_| database.store(table.description())).collect();
    for round in 0..25 {
        let tenant = format!("tenant {round}");
        let claims = stores.iter().map(|store| {
            let (store, request) = (store.clone(), request(&tenant));
            tokio::spawn(async move {
                let begun = Instant::now();
                (store.claim(&request).await.unwrap(), begun.elapsed())
            })
        });
        let mut held = Vec::new();
        for claim in claims.collect::<Vec<_>>() {
            let (outcome, took) = claim.await.unwrap();
            assert!(took < Duration::from_secs(10), "a claim waited for another: {took:?}");
            if let ClaimOutcome::Claimed(claimed) = outcome {
                held.push(claimed);
            }
        }
        assert!(held.len() <= 1, "{} hold {tenant}", held.len());
        for claimed in held {
            claimed.claim.settle(Settlement::release()).await.unwrap();
        }
        // Whoever was first, the row is there now.
        claim(&stores[0], &tenant).await.claim.settle(Settlement::release()).await.unwrap();
    }
    assert_eq!(database.number("SELECT count(*) FROM outbox_message_claims").await, 26);
    database.drop().await;
}

/// While another adds a row, and has not committed, a claim of a tenant without one is told that it is held, at
/// once: it waits neither for the sentinel nor for the insert.
#[tokio::test]
async fn a_row_being_added_by_another_is_not_waited_for() {
    let database = Database::create().await;
    let table = database.make(&OutboxTable::default()).await;
    let store = database.store(table.description());
    let mut other = database.admin.begin().await.unwrap();
    let add = "SELECT 1 FROM outbox_message_claims WHERE tenant_id = '' FOR UPDATE;
               INSERT INTO outbox_message_claims (tenant_id) VALUES ('acme')";
    sqlx::raw_sql(add).execute(&mut *other).await.unwrap();
    assert!(is_held(&store, "acme").await);
    assert!(is_held(&store, "globex").await, "its row cannot be added now");
    other.rollback().await.unwrap();
    freed(&store, "acme").await.claim.settle(Settlement::release()).await.unwrap();
    database.drop().await;
}

/// A row that somebody adds without the sentinel is waited for no longer than the operation may take, and the
/// tenant counts as held.
#[tokio::test]
async fn a_foreign_insert_delays_a_claim_by_its_timeout_at_most() {
    let database = Database::create().await;
    let table = database.make(&OutboxTable::default()).await;
    let store = database.store(table.description());
    let mut other = database.admin.begin().await.unwrap();
    let add = "INSERT INTO outbox_message_claims (tenant_id) VALUES ('acme')";
    sqlx::raw_sql(add).execute(&mut *other).await.unwrap();
    let claiming = store.claim(&request("acme").with_timeout(Duration::from_secs(1))).await;
    match claiming {
        Ok(ClaimOutcome::Held) => {}
        Err(error) => assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}"),
        Ok(outcome) => panic!("{outcome:?}"),
    }
    other.rollback().await.unwrap();
    // The server ends the wait by itself, and then nothing is in the way.
    let begun = Instant::now();
    while is_held(&store, "acme").await {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    database.drop().await;
}

/// Without the sentinel no row can be added: that is an error that says so, for tenants without a row only.
#[tokio::test]
async fn a_lost_sentinel_is_an_error_that_says_so() {
    let database = Database::create().await;
    let table = database.make(&OutboxTable::default()).await;
    let store = database.store(table.description());
    claim(&store, "acme").await.claim.settle(Settlement::release()).await.unwrap();
    database.run("DELETE FROM outbox_message_claims WHERE tenant_id = ''").await;
    let error = refused(&store, "globex").await;
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(error.message().contains("lacks its empty row"), "{error}");
    claim(&store, "acme").await.claim.settle(Settlement::release()).await.unwrap();
    database.run("INSERT INTO outbox_message_claims (tenant_id) VALUES (x'')").await;
    claim(&store, "globex").await.claim.settle(Settlement::release()).await.unwrap();
    database.drop().await;
}

/// A deadlock that a claim's mark loses is transient; nothing is marked, and the tenant is free.
#[tokio::test]
async fn a_lost_deadlock_is_transient_and_frees_the_tenant() {
    let database = Database::create().await;
    let table = database.make(&OutboxTable::default()).await;
    let store = database.store(table.description());
    let written = database.append(&table, &[message("acme", "1"), message("acme", "2")]).await;
    let claimed = claim(&store, "acme").await;
    let mut other = database.admin.begin().await.unwrap();
    // Much is written there, so that the server ends the claim's transaction and not this one.
    let heavy = "CREATE TABLE heavy AS SELECT 1 AS n";
    database.run(heavy).await;
    for _ in 0..8 {
        sqlx::raw_sql("INSERT INTO heavy SELECT * FROM heavy").execute(&mut *other).await.unwrap();
    }
    let lock = format!("SELECT 1 FROM outbox_message WHERE id = {} FOR UPDATE", written[1]);
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut *other).await.unwrap();
    let published = claimed.messages.iter().map(|message| message.id).collect::<Vec<_>>();
    let settling = tokio::spawn(claimed.claim.settle(Settlement::published(published)));
    // The mark has the first row and waits for the second; now the other waits for the first.
    let begun = Instant::now();
    while database.waiting(STORE).await == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the mark does not wait");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let lock = format!("SELECT 1 FROM outbox_message WHERE id = {} FOR UPDATE", written[0]);
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut *other).await.unwrap();
    let error = settling.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
    other.rollback().await.unwrap();
    assert_eq!(freed(&store, "acme").await.messages.len(), 2);
    database.drop().await;
}
