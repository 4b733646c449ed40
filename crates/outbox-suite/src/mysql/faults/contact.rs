//! First contact: what is wrong between the relay and a table that works. The error's own line says what to do.

use outbox_core::{ProbeRequest, Store, StoreError, StoreErrorKind, Tenants};
use outbox_sql::OutboxTable;
use servers::MariaDb;

use crate::BOUND;
use crate::mysql::{Driver, Stage};

type Options = sqlx::mysql::MySqlConnectOptions;

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

/// A login with another password, and one without TLS where the server wants TLS.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_login_that_is_refused_says_what_to_correct(driver: Driver) {
    let server = MariaDb::start(&[]).unwrap();
    let stage = Stage::on(driver, &server, "contact").await;
    let database = &stage.database;
    database.run("CREATE USER keeper IDENTIFIED BY 'right'").await;
    database.run("CREATE USER tls").await;
    database.run("GRANT ALL ON *.* TO tls REQUIRE SSL").await;
    let wrong = stage.options().username("keeper").password("wrong");
    assert_says(&first_words(driver, wrong).await, &["refused the login", "correct user and password"]);
    let plain = stage.options().username("tls");
    assert_says(
        &first_words(driver, plain).await,
        &["refused the login", "correct user and password", "TLS"],
    );
    database.run("SET GLOBAL require_secure_transport = ON").await;
    // MySQL says so; MariaDB denies access, whoever it is.
    assert_says(&first_words(driver, stage.options()).await, &["refused the login", "connect with TLS"]);
    database.run("SET GLOBAL require_secure_transport = OFF").await;
    stage.end().await;
}

/// A database that is none, and one without the table.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn another_database_says_what_to_correct(driver: Driver) {
    let stage = Stage::new(driver).await;
    stage.database.run("DROP TABLE outbox_message").await;
    let missing = first_words(driver, stage.options()).await;
    assert_says(&missing, &["outbox_message' doesn't exist", "create outbox_message", "or database"]);
    let none = stage.options().database("no_such_database").username("root");
    assert_says(&first_words(driver, none).await, &["no_such_database", "correct the name of the database"]);
    stage.end().await;
}
