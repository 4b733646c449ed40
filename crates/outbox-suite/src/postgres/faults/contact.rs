//! First contact: what is wrong between the relay and a table that works. The error's own line says what to do.

use outbox_core::{ProbeRequest, Store, StoreError, StoreErrorKind, Tenants};
use outbox_sql::OutboxTable;
use servers::Postgres;
use sqlx::postgres::PgPoolOptions;

use crate::BOUND;
use crate::postgres::{Database, Driver, Stage};
use crate::server::message;

type Options = sqlx::postgres::PgConnectOptions;

/// What the first probe of a store that connects so says.
async fn first_words(driver: Driver, options: Options) -> StoreError {
    let store = driver.pool(options, 1).store(&OutboxTable::default());
    let request = ProbeRequest::new(Tenants::Discovered).with_timeout(BOUND);
    store.probe(&request).await.unwrap_err()
}

/// The error says these things itself, without its causes, and that it stays.
#[track_caller]
fn assert_says(error: &StoreError, parts: &[&str]) {
    let line = error.to_string();
    assert!(parts.iter().all(|part| line.contains(part)), "{line:?} does not say {parts:?}");
    assert_eq!(error.kind(), StoreErrorKind::Permanent, "{line}");
}

/// Who may connect, and how.
async fn set_hba(database: &Database, lines: &str) {
    let loaded = database.text("SELECT pg_conf_load_time()::text").await;
    database
        .run(format!(
            "DO $$ BEGIN EXECUTE format('COPY (SELECT unnest(%L::text[])) TO %L', string_to_array('{lines}', ';'), \
             current_setting('hba_file')); END $$; SELECT pg_reload_conf()"
        ))
        .await;
    // Whoever has read the settings anew did so after the server had: it lets nobody in meanwhile.
    database.wait_until(&format!("SELECT pg_conf_load_time() > '{loaded}'")).await;
}

/// A login with another password, of nobody, from where the server lets nobody in, without TLS where it wants TLS.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_login_that_is_refused_says_what_to_correct(driver: Driver) {
    let server = Postgres::start(&[]).unwrap();
    let stage = Stage::on(driver, &server, "contact").await;
    let database = &stage.database;
    database
        .run("CREATE ROLE keeper LOGIN PASSWORD 'right'; CREATE ROLE stranger LOGIN; CREATE ROLE tls LOGIN")
        .await;
    let admin = database.text("SELECT current_user::text").await;
    set_hba(
        database,
        &format!(
            "local all all trust;host all {admin} all trust;host all nobody all trust;\
             host all keeper all scram-sha-256;hostssl all tls all trust"
        ),
    )
    .await;
    let of = |role: &str| database.options.clone().username(role);
    assert_says(
        &first_words(driver, of("keeper").password("wrong")).await,
        &["refused the login", "password authentication failed", "correct user and password"],
    );
    assert_says(
        &first_words(driver, of("nobody")).await,
        &["refused the login", "correct user and password"],
    );
    let stranger = first_words(driver, of("stranger")).await;
    assert_says(&stranger, &["refused the login", "no pg_hba.conf entry", "add a line to pg_hba.conf"]);
    assert_says(&first_words(driver, of("tls")).await, &["refused the login", "with TLS"]);
    stage.end().await;
}

/// A database that is none, and one without the table.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn another_database_says_what_to_correct(driver: Driver) {
    let stage = Stage::new(driver).await;
    let none = stage.options().database("no_such_database");
    assert_says(&first_words(driver, none).await, &["no_such_database", "correct the name of the database"]);
    let without = stage.options().database("postgres");
    let missing = first_words(driver, without).await;
    assert_says(&missing, &["public.outbox_message does not exist", "create it", "or database"]);
    stage.end().await;
}

/// A database that takes any bytes for text: one tenant with such bytes would stop the search for all. The first probe
/// refuses it, before there is one, and so does `check()`.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_database_without_an_encoding_is_refused_by_the_first_probe_and_by_check(
    driver: Driver,
) {
    let stage = Stage::new(driver).await;
    let name = format!("{}_ascii", stage.database.name);
    stage
        .database
        .run(format!(
            "CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        ))
        .await;
    let options = stage.database.options.clone().database(&name);
    let ascii = Database {
        driver,
        name,
        admin: PgPoolOptions::new().connect_lazy_with(options.clone()),
        options: options.clone(),
    };
    let table = ascii.make(&OutboxTable::default()).await;
    ascii.append(&table, &[message("acme", "{}")]).await;
    assert_says(&first_words(driver, options.clone()).await, &["SQL_ASCII", "UTF8"]);
    let findings = driver.pool(options, 2).store(&OutboxTable::default()).check().await.unwrap();
    assert!(findings.iter().any(|finding| finding.to_string().contains("SQL_ASCII")), "{findings:?}");
    ascii.drop().await;
    stage.end().await;
}

/// A session that listens and stays in a transaction keeps every notification: `check()` says so before the queue is
/// full and commits that notify fail.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_queue_of_notifications_that_nobody_reads_is_told_by_check(driver: Driver) {
    let server = Postgres::start(&[]).unwrap();
    let stage = Stage::on(driver, &server, "queue").await;
    let findings = stage.store(2).check().await.unwrap();
    assert_eq!(findings, [], "{findings:?}");
    let mut listener = stage.database.admin.acquire().await.unwrap();
    for statement in ["LISTEN somebody", "BEGIN"] {
        sqlx::raw_sql(statement).execute(&mut *listener).await.unwrap();
    }
    // A little more than one hundredth of 8 GB.
    let fill = "SELECT count(pg_notify('somebody', repeat('x', 7900) || place)) FROM generate_series(1, 12500) AS place";
    stage.database.run(fill).await;
    let findings = stage.store(2).check().await.unwrap();
    assert!(
        findings.iter().any(|finding| finding.to_string().contains("queue of notifications")),
        "{findings:?}"
    );
    sqlx::raw_sql("ROLLBACK; UNLISTEN somebody").execute(&mut *listener).await.unwrap();
    drop(listener);
    stage.end().await;
}
