//! The application's pools of diesel-async, lent to the store, on both kinds of runtime.

use std::time::{Duration, Instant};

use diesel::SqliteConnection;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, bb8, deadpool};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use outbox_core::{ClaimOutcome, Settlement, Store as _, StoreErrorKind};
use outbox_diesel::sqlite::{SqliteConnections, SqliteStore, SqliteTable};
use outbox_suite::sqlite::{FileDatabase, Open, claim, ids, message, polled, request, tenant, try_claim};
use outbox_suite::{BOUND, chain};

use crate::driver::{driver, setup, url};

type Wrapper = SyncConnectionWrapper<SqliteConnection>;

fn manager(open: &Open) -> AsyncDieselConnectionManager<Wrapper> {
    let setup = setup(open);
    let mut config = ManagerConfig::default();
    config.custom_setup = Box::new(move |url| {
        let (url, setup) = (url.to_owned(), setup.clone());
        Box::pin(async move {
            let mut connection = Wrapper::establish(&url).await?;
            connection
                .batch_execute(&setup)
                .await
                .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            Ok(connection)
        })
    });
    AsyncDieselConnectionManager::new_with_config(url(open), config)
}

pub(crate) fn bb8(open: &Open) -> bb8::Pool<Wrapper> {
    bb8::Pool::builder().max_size(open.connections).build_unchecked(manager(open))
}

pub(crate) fn deadpool(open: &Open) -> deadpool::Pool<Wrapper> {
    let size = usize::try_from(open.connections).expect("a size");
    deadpool::Pool::builder(manager(open)).max_size(size).build().expect("a pool")
}

fn store(connections: impl Into<SqliteConnections>, database: &FileDatabase) -> SqliteStore {
    SqliteStore::new(connections, database.table.clone()).expect("a table")
}

/// Runs a test once on each kind of runtime, for each pool.
fn on_each<F: Future<Output = ()>>(
    test: impl Fn(FileDatabase, SqliteStore, Source) -> F,
    open: impl Fn(&FileDatabase) -> Open,
) {
    for threads in [0, 2] {
        for deadpool_too in [false, true] {
            let runtime = match threads {
                0 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
                threads => {
                    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
                }
            };
            runtime.expect("a runtime").block_on(async {
                let database = FileDatabase::new(driver()).await;
                let open = open(&database);
                let source =
                    if deadpool_too { Source::Deadpool(deadpool(&open)) } else { Source::Bb8(bb8(&open)) };
                let store = match source.clone() {
                    Source::Bb8(pool) => store(pool, &database),
                    Source::Deadpool(pool) => store(pool, &database),
                };
                test(database, store, source).await;
            });
        }
    }
}

#[derive(Clone)]
enum Source {
    Bb8(bb8::Pool<Wrapper>),
    Deadpool(deadpool::Pool<Wrapper>),
}

#[test]
fn a_store_on_a_pool_claims_marks_and_is_content() {
    let test = async |database: FileDatabase, store: SqliteStore, _| {
        let acme = tenant("acme");
        let written = database.commit(&acme, 3).await;
        assert_eq!(store.check().await.expect("a check"), []);
        let claimed = claim(&store, &acme).await;
        assert_eq!(ids(&claimed), written);
        assert!(try_claim(&database.store(), &acme).await.expect("a claim").is_none(), "one lock");
        claimed.claim.settle(Settlement::published(written)).await.expect("settled");
        assert_eq!(database.marked().await, 3);
    };
    on_each(test, FileDatabase::open);
}

/// What diesel-async does when a future of its SQLite connection is dropped (block, or panic) never happens.
#[test]
fn a_settlement_dropped_while_it_marks_neither_blocks_nor_panics_nor_frees_the_tenant() {
    let test = async |database: FileDatabase, store: SqliteStore, _| {
        let acme = tenant("acme");
        let written = database.commit(&acme, 2).await;
        let other = database.store();
        drop(claim(&other, &acme).await);
        let claimed = claim(&store, &acme).await;
        let mut writer = database.application().await;
        writer.execute("BEGIN IMMEDIATE").await;
        let settling = claimed.claim.settle(Settlement::published(written));
        let start = Instant::now();
        let step = tokio::time::timeout(Duration::from_millis(100), settling).await;
        assert!(step.is_err(), "SQLite waits for the writer");
        assert!(start.elapsed() < BOUND, "the drop did not wait for the statement");
        for _ in 0..10 {
            assert!(try_claim(&other, &acme).await.expect("a claim").is_none(), "it may still mark");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        writer.execute("COMMIT").await;
        assert!(claim(&other, &acme).await.messages.is_empty());
        assert_eq!(database.marked().await, 2);
    };
    on_each(test, |database| database.open().busy(2 * BOUND));
}

/// Futures dropped at random awaits on a pool of one: the pool keeps its connection, and what the application
/// writes next on it is really there.
#[test]
fn cancelled_futures_do_not_poison_a_pool_of_one() {
    let test = async |database: FileDatabase, store: SqliteStore, source: Source| {
        let (acme, globex) = (tenant("acme"), tenant("globex"));
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..150 {
            database.commit(&acme, 1).await;
            let whole = async {
                let Ok(ClaimOutcome::Claimed(mut claimed)) = store.claim(&request(&acme, 5)).await else {
                    return;
                };
                let published = ids(&claimed);
                let _ = claimed.claim.verify().await;
                let _ = claimed.claim.settle(Settlement::published(published)).await;
            };
            polled(random.usize(0..12), whole).await;
            let (table, message) =
                (SqliteTable::new(database.table.clone()).expect("a table"), message(&globex, round));
            match &source {
                Source::Bb8(pool) => {
                    let mut connection = pool.get().await.expect("the pool has its connection");
                    table.append(&message).execute_async(&mut *connection).await.expect("written");
                }
                Source::Deadpool(pool) => {
                    let mut connection = pool.get().await.expect("the pool has its connection");
                    table.append(&message).execute_async(&mut *connection).await.expect("written");
                }
            }
            let count: i64 =
                sqlx::query_scalar("SELECT count(*) FROM outbox_message WHERE tenant_id = 'globex'")
                    .fetch_one(&mut database.connection().await)
                    .await
                    .expect("counted by somebody else");
            assert_eq!(count, i64::try_from(round + 1).expect("few"), "round {round} said OK");
        }
        claim(&store, &acme).await;
    };
    on_each(test, |database| Open { connections: 1, ..database.open() });
}

#[test]
fn a_pool_without_a_free_connection_is_an_error_that_says_so() {
    let test = async |database: FileDatabase, store: SqliteStore, source: Source| {
        let acme = tenant("acme");
        drop(claim(&store, &acme).await);
        let request = request(&acme, 1).with_timeout(Duration::from_millis(100));
        match &source {
            Source::Bb8(pool) => {
                let _all = pool.get().await.expect("the only one");
                let error = store.claim(&request).await.expect_err("none is free");
                assert_eq!(error.kind(), StoreErrorKind::Transient);
                assert!(chain(&error).contains("no connection was free"), "{}", chain(&error));
            }
            Source::Deadpool(pool) => {
                let all = pool.get().await.expect("the only one");
                let error = store.claim(&request).await.expect_err("none is free");
                assert!(chain(&error).contains("no connection was free"), "{}", chain(&error));
                drop(all);
                pool.close();
                let error = store.claim(&request).await.expect_err("closed");
                assert_eq!(error.kind(), StoreErrorKind::Permanent);
                assert!(chain(&error).contains("the pool is closed"), "{}", chain(&error));
                return;
            }
        }
        claim(&store, &acme).await;
        drop(database);
    };
    on_each(test, |database| Open { connections: 1, ..database.open() });
}

/// A pool does not tell which database in memory it has, so that two of them could not be told apart.
#[test]
fn a_pool_of_a_database_in_memory_is_refused() {
    let test = async |_, store: SqliteStore, _| {
        let error = try_claim(&store, &tenant("acme")).await.expect_err("which database?");
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert!(chain(&error).contains("SqliteConnector::new"), "{}", chain(&error));
    };
    on_each(test, |_| Open { connections: 1, ..Open::named("file:pool?mode=memory&cache=shared") });
}
