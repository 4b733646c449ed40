//! The tenant's row among the claims: who has it, who adds it, and who must not wait.

use std::time::{Duration, Instant};

use outbox_core::{ClaimOutcome, ClaimRequest, Settlement, Store, StoreErrorKind};
use outbox_sql::OutboxTable;

use crate::mysql::{Database, Driver, STORE};
use crate::server::{BOUND, SOON, claim, is_held, message, refused, request};

/// Two replicas meet a tenant that has no row yet: one gets it, the other is told at once that it is held, and
/// nobody waits for the other's batch. Again and again, with a new tenant each time.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn replicas_that_meet_a_tenant_without_a_row_do_not_wait_for_each_other_s_batch(
    driver: Driver,
) {
    let database = Database::create(driver).await;
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
            assert!(took < SOON, "a claim waited for another: {took:?}");
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

/// Several tenants are claimed for the first time at the same moment: each is taken, and none is told to be held
/// because another's row is being added. Again and again, with new tenants each time.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn new_tenants_are_not_in_each_other_s_way(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let stores: Vec<_> = (0..4).map(|_| database.store(table.description())).collect();
    for round in 0..25 {
        let claims: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(nth, store)| {
                let (store, request) = (store.clone(), patient(&format!("tenant {round} {nth}")));
                tokio::spawn(async move { store.claim(&request).await.unwrap() })
            })
            .collect();
        for claim in claims {
            match claim.await.unwrap() {
                ClaimOutcome::Claimed(claimed) => claimed.claim.settle(Settlement::release()).await.unwrap(),
                other => panic!("round {round}: {other:?}"),
            }
        }
    }
    database.drop().await;
}

/// A claim that may take so long that the wait for the sentinel, a part of that, ends no test.
fn patient(tenant: &str) -> ClaimRequest {
    request(tenant).with_timeout(Duration::from_mins(20))
}

/// A session that has the sentinel locked and adds the row of `acme`.
async fn adding(database: &Database) -> sqlx::Transaction<'static, sqlx::MySql> {
    let mut other = database.admin.begin().await.unwrap();
    let add = "SELECT 1 FROM outbox_message_claims WHERE tenant_id = '' FOR UPDATE;
               INSERT INTO outbox_message_claims (tenant_id) VALUES ('acme')";
    sqlx::raw_sql(add).execute(&mut *other).await.unwrap();
    other
}

/// While another adds a row, a claim of another tenant without one waits until that is done, and has its tenant.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_new_tenant_is_claimed_as_soon_as_another_is_added(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let store = database.store(table.description());
    let other = adding(&database).await;
    let claiming = tokio::spawn(async move { store.claim(&patient("globex")).await.unwrap() });
    while database.waiting(STORE).await == 0 && !claiming.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    other.commit().await.unwrap();
    let outcome = claiming.await.unwrap();
    assert!(matches!(outcome, ClaimOutcome::Claimed(_)), "{outcome:?}");
    drop(outcome);
    database.drop().await;
}

/// A sentinel that somebody keeps is waited for no longer than a part of the operation's time: then the new tenant
/// counts as held, and what the claim was made with is given back. Nobody else waits: a tenant that has a row is
/// claimed, and told to be held, without a wait.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_sentinel_that_is_kept_delays_new_tenants_alone_and_not_for_long(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let stores = [(); 3].map(|()| database.store(table.description()));
    let [store, mine, others] = &stores;
    claim(mine, "initech").await.claim.settle(Settlement::release()).await.unwrap();
    let other = adding(&database).await;
    assert!(is_held(store, "acme").await, "its row is not there yet");
    assert!(is_held(store, "globex").await, "its row cannot be added now");
    assert_eq!(database.transactions(STORE).await, 0);

    // The claims of a tenant with a row come to their end while the other waits for the sentinel, however slow.
    let waiting = store.clone();
    let waiting = tokio::spawn(async move { waiting.claim(&patient("globex")).await.unwrap() });
    while database.waiting(STORE).await == 0 && !waiting.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let held = claim(mine, "initech").await;
    assert!(is_held(others, "initech").await);
    held.claim.settle(Settlement::release()).await.unwrap();
    assert!(!waiting.is_finished(), "they waited for the sentinel");
    other.rollback().await.unwrap();
    let outcome = waiting.await.unwrap();
    assert!(matches!(outcome, ClaimOutcome::Claimed(_)), "{outcome:?}");
    drop(outcome);
    claim(store, "acme").await.claim.settle(Settlement::release()).await.unwrap();
    database.drop().await;
}

/// A row that somebody adds without the sentinel is waited for no longer than the operation may take, and the
/// tenant counts as held.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_foreign_insert_delays_a_claim_by_its_timeout_at_most(driver: Driver) {
    let database = Database::create(driver).await;
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
        assert!(begun.elapsed() < BOUND);
    }
    database.drop().await;
}

/// Without the sentinel no row can be added: that is an error that says so, for tenants without a row only.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_lost_sentinel_is_an_error_that_says_so(driver: Driver) {
    let database = Database::create(driver).await;
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
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_lost_deadlock_is_transient_and_frees_the_tenant(driver: Driver) {
    let database = Database::create(driver).await;
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
        assert!(begun.elapsed() < BOUND, "the mark does not wait");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let lock = format!("SELECT 1 FROM outbox_message WHERE id = {} FOR UPDATE", written[0]);
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut *other).await.unwrap();
    let error = settling.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
    other.rollback().await.unwrap();
    assert_eq!(claim(&store, "acme").await.messages.len(), 2);
    database.drop().await;
}
