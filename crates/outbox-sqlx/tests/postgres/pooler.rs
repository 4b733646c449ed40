//! A real `PgBouncer` in transaction mode.

use std::str::FromStr;

use outbox_core::{HealthReport, ProbeRequest, Store, StoreErrorKind, Tenants};
use outbox_sqlx::postgres::PostgresStore;
use outbox_suite::of_any_server;
use outbox_suite::postgres::Stage;
use outbox_suite::server::{Entry, Replica, message, quick, soon, tenant};
use outbox_testkit::Recorder;
use servers::{PgBouncer, PoolMode, Postgres};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::driver::driver;

/// A store through the pooler, which takes none of the options that a role is set by.
fn through(pooler: &PgBouncer, stage: &Stage) -> PostgresStore {
    let options = PgConnectOptions::from_str(&pooler.url(&stage.database.name)).unwrap();
    let pool = PgPoolOptions::new().max_connections(5).connect_lazy_with(options);
    PostgresStore::new(pool, stage.table.description().clone()).unwrap()
}

/// Two replicas, and an application that appends in transactions, through the pooler without named statements:
/// everything is published once, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_drain_through_a_transaction_pooler_without_named_statements() {
    let server = Postgres::start(&[]).unwrap();
    let pooler = PgBouncer::start(&server, PoolMode::Transaction).unwrap();
    let stage = Stage::on(driver(), &server, "pooled").await;
    let stores = [(); 2].map(|()| through(&pooler, &stage).without_named_statements());
    assert_eq!(of_any_server(stores[0].check().await.unwrap()), []);
    let all = Recorder::new();
    let config = || quick().initial_batch(4).max_batch(4);
    let replicas = stores.each_ref().map(|store| Replica::start(store, all.clone(), config()));
    let table = stage.table.clone().without_named_statements();
    let writer = through(&pooler, &stage).without_named_statements();
    let mut count = 0;
    for _ in 0..20 {
        for name in ["acme", "globex", "initech", "umbrella"] {
            let mut transaction = writer.pool().begin().await.unwrap();
            let messages = vec![message(name, "{}"); 5];
            count += table.append_all(&mut transaction, &messages).await.unwrap().len();
            transaction.commit().await.unwrap();
        }
    }
    soon("everything is published", all.wait_for_accepted(count)).await;
    stage.wait_until_published().await;
    all.assert_in_order();
    all.assert_no_duplicates();
    assert_eq!(all.accepted(&tenant("acme")).len(), count / 4);
    for replica in replicas {
        assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
        replica.health(HealthReport::is_healthy).await;
        replica.stop().await;
    }
    stage.end().await;
}

/// With named statements, `check()` says what is wrong, an operation that meets another's statement says what to
/// do, and nothing is lost or overtaken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn named_statements_through_a_transaction_pooler_are_found_by_check_and_lose_nothing() {
    let server = Postgres::start(&[]).unwrap();
    let pooler = PgBouncer::start(&server, PoolMode::Transaction).unwrap();
    let stage = Stage::on(driver(), &server, "named").await;
    let stores = [(); 2].map(|()| through(&pooler, &stage));
    let findings = of_any_server(stores[0].check().await.unwrap());
    assert!(findings.iter().any(|finding| finding.to_string().contains("named statements")), "{findings:?}");
    let all = Recorder::new();
    let replicas = stores.each_ref().map(|store| Replica::start(store, all.clone(), quick()));
    for name in ["acme", "globex", "initech"] {
        stage.append(name, 20).await;
    }
    let told = |entry: &Entry| matches!(entry, Entry::Failed(_, reason) if reason.contains("without_named_statements"));
    let somebody_is_told = async {
        tokio::select! {
            () = replicas[0].journal.wait_for(1, told) => {}
            () = replicas[1].journal.wait_for(1, told) => {}
        }
    };
    soon("a statement's name is met twice", somebody_is_told).await;
    for replica in replicas {
        replica.stop().await;
    }
    // With the option, what is left is published.
    let store = through(&pooler, &stage).without_named_statements();
    let replica = Replica::start(&store, all.clone(), quick());
    stage.wait_until_published().await;
    all.assert_in_order();
    replica.stop().await;
    stage.end().await;
}

/// `PgBouncer` with its own defaults refuses a parameter that sqlx sends: the error's line says what to set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_as_it_comes_is_told_apart_and_the_error_says_what_to_set() {
    let server = Postgres::start(&[]).unwrap();
    let pooler = PgBouncer::start_as_it_comes(&server, PoolMode::Transaction).unwrap();
    let stage = Stage::on(driver(), &server, "pooled").await;
    let store = through(&pooler, &stage).without_named_statements();
    let probe = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap_err();
    for error in [probe, store.check().await.unwrap_err()] {
        let line = error.to_string();
        assert!(line.contains("ignore_startup_parameters = extra_float_digits"), "{line}");
        assert_eq!(error.kind(), StoreErrorKind::Permanent, "{line}");
    }
    stage.end().await;
}

/// `check()` of a store without named statements works while others keep the pooler's sessions busy: each of its
/// statements would be run on another session than it was prepared on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_works_behind_a_transaction_pooler_under_load() {
    let server = Postgres::start(&[]).unwrap();
    let pooler = PgBouncer::start(&server, PoolMode::Transaction).unwrap();
    let stage = Stage::on(driver(), &server, "checked").await;
    let store = through(&pooler, &stage).without_named_statements();
    let others: Vec<_> = (0..12)
        .map(|_| {
            let pool = through(&pooler, &stage).pool().clone();
            tokio::spawn(async move {
                loop {
                    let _ = sqlx::raw_sql("BEGIN; SELECT pg_sleep(0.001); COMMIT").execute(&pool).await;
                }
            })
        })
        .collect();
    for _ in 0..50 {
        assert_eq!(of_any_server(store.check().await.unwrap()), []);
    }
    for other in others {
        other.abort();
    }
    stage.end().await;
}
