//! A password is in no text that a log may get: in no Debug of ours, in no error, and in nothing that an error came
//! from. On sqlx and on Diesel.
#![cfg(all(
    feature = "postgres",
    feature = "mysql",
    feature = "sqlite",
    feature = "bb8",
    feature = "deadpool"
))]

use std::error::Error;
use std::fmt::Debug;

use diesel_async::pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool};
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection};
use outbox_core::{ClaimRequest, Inspect, PendingRequest, ProbeRequest, StoreError, TenantId, Tenants};
use outbox_diesel::OutboxTable;
use sqlx::postgres::PgConnectOptions;

/// Of the password, as it is and as a URL has it.
const SECRET: &str = "s3cret";
/// Nobody listens there.
const POSTGRES: &str = "postgres://user:s3cret%2Fp%40ss@127.0.0.1:1/database";
const MYSQL: &str = "mysql://user:s3cret%2Fp%40ss@127.0.0.1:1/database";

fn table() -> OutboxTable {
    OutboxTable::default()
}

/// Neither in one line nor in many.
fn is_silent(value: &impl Debug) {
    for text in [format!("{value:?}"), format!("{value:#?}")] {
        assert!(!text.contains(SECRET), "{text}");
    }
}

/// Nor is what it says, nor what it came from.
fn fails_in_silence(error: &StoreError) {
    is_silent(error);
    let mut next: Option<&dyn Error> = Some(error);
    while let Some(error) = next {
        assert!(!error.to_string().contains(SECRET), "{error}");
        is_silent(&error);
        next = error.source();
    }
}

/// A store that reaches no database, whatever it is asked.
async fn reaches_nothing<S: Inspect + Debug>(store: S) {
    is_silent(&store);
    let tenant = TenantId::new("acme").unwrap();
    let probed = store.probe(&ProbeRequest::new(Tenants::Discovered)).await;
    fails_in_silence(&probed.unwrap_err());
    let pending = store.pending(&PendingRequest::new(tenant.clone(), 1.try_into().unwrap())).await;
    fails_in_silence(&pending.unwrap_err());
    let claimed = store.claim(&ClaimRequest::new(tenant, 1.try_into().unwrap())).await;
    fails_in_silence(&claimed.map(|_| ()).unwrap_err());
}

#[tokio::test]
async fn sqlx_tells_no_password_to_postgres() {
    use outbox_sqlx::postgres::{
        PostgresListener, PostgresNotifier, PostgresStore, PostgresTable, Watermark,
    };
    let options: PgConnectOptions = POSTGRES.parse().unwrap();
    assert!(format!("{options:?}").contains(SECRET), "sqlx does not read the password: nothing is tested");
    let pool = sqlx::PgPool::connect_lazy(POSTGRES).unwrap();
    is_silent(&PostgresListener::new(options, &table()).unwrap());
    is_silent(&PostgresNotifier::start(pool.clone(), &PostgresTable::new(table()).unwrap()).unwrap());
    let store = PostgresStore::new(pool, table()).unwrap().with_watermark(Watermark::new());
    fails_in_silence(&store.check().await.unwrap_err());
    reaches_nothing(store).await;
}

#[tokio::test]
async fn sqlx_tells_no_password_to_mysql() {
    use outbox_sqlx::mysql::MySqlStore;
    let store = MySqlStore::new(sqlx::MySqlPool::connect_lazy(MYSQL).unwrap(), table()).unwrap();
    fails_in_silence(&store.check().await.unwrap_err());
    reaches_nothing(store).await;
}

/// A key can be in a URL of SQLite's too.
#[tokio::test]
async fn no_key_to_sqlite_is_told() {
    let url = "file:/nowhere/at/all?key=s3cret%2Fp%40ss";
    let pool = sqlx::SqlitePool::connect_lazy_with(
        sqlx::sqlite::SqliteConnectOptions::new().filename("/nowhere/at/all").pragma("key", "s3cret/p@ss"),
    );
    let store = outbox_sqlx::sqlite::SqliteStore::new(pool, table()).unwrap();
    is_silent(&store.check().await.unwrap());
    reaches_nothing(store).await;
    let connector = outbox_diesel::sqlite::SqliteConnector::new(url);
    is_silent(&connector);
    let store = outbox_diesel::sqlite::SqliteStore::new(connector, table()).unwrap();
    is_silent(&store.check().await.unwrap());
    reaches_nothing(store).await;
}

/// Also where the URL cannot be read, and the driver says why.
#[tokio::test]
async fn diesel_tells_no_password_to_postgres() {
    use outbox_diesel::postgres::PostgresStore;
    for url in [
        POSTGRES,
        "postgres://user:s3cret@127.0.0.1:port/database",
        "postgres://user:s3cret%zz@127.0.0.1:1/database",
        "postgres://user:s3cret@127.0.0.1:1/database?connect_timeout=soon",
        "host=127.0.0.1 password='s3cret",
        "host=127.0.0.1 password=s3cret port=1 s3cret",
    ] {
        let manager = || AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
        let pool = deadpool::Pool::builder(manager()).build().unwrap();
        is_silent(&outbox_diesel::pool::Pool::from(pool.clone()));
        let store = PostgresStore::new(pool, table()).unwrap();
        fails_in_silence(&store.check().await.unwrap_err());
        reaches_nothing(store).await;
        let pool = bb8::Pool::builder().build_unchecked(manager());
        reaches_nothing(PostgresStore::new(pool, table()).unwrap()).await;
    }
}

#[tokio::test]
async fn diesel_tells_no_password_to_mysql() {
    use outbox_diesel::mysql::MySqlStore;
    for url in [
        MYSQL,
        "mysql://user:s3cret@127.0.0.1:port/database",
        "mysql://user:s3cret%zz@127.0.0.1:1/database",
        "mysql://user:s3cret@127.0.0.1:1/database?pool_min=soon",
        "other://user:s3cret@127.0.0.1:1/database",
    ] {
        let manager = || AsyncDieselConnectionManager::<AsyncMysqlConnection>::new(url);
        let pool = deadpool::Pool::builder(manager()).build().unwrap();
        let store = MySqlStore::new(pool, table()).unwrap();
        fails_in_silence(&store.check().await.unwrap_err());
        reaches_nothing(store).await;
        let pool = bb8::Pool::builder().build_unchecked(manager());
        reaches_nothing(MySqlStore::new(pool, table()).unwrap()).await;
    }
}
