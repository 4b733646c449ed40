//! What the drivers of both pools share: from how sqlx connects, which the tests are written with, to how `diesel-async`
//! does, and stores.

use std::fmt::Write as _;

use diesel::sql_types::Text;
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use outbox_diesel::OutboxTable;
use outbox_diesel::pool::Pool;
use outbox_diesel::postgres::PostgresStore;
use outbox_suite::{AnyStore, Setting};
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

/// A manager that connects like this. Connections are not asked whether they live: what they meet is the store's.
pub(crate) fn manager(options: &PgConnectOptions) -> AsyncDieselConnectionManager<AsyncPgConnection> {
    let mut config = ManagerConfig::default();
    config.recycling_method = RecyclingMethod::Fast;
    AsyncDieselConnectionManager::new_with_config(text(options), config)
}

/// As keys and values.
pub(crate) fn text(options: &PgConnectOptions) -> String {
    let url = options.to_url_lossy();
    let mut text = format!("host='{}' port={}", options.get_host(), options.get_port());
    let mut add = |key: &str, value: &str| {
        let value = value.replace('\\', "\\\\").replace('\'', "\\'");
        write!(text, " {key}='{value}'").unwrap();
    };
    add("user", options.get_username());
    let password = url.password().unwrap_or_default();
    if !password.is_empty() {
        add("password", password);
    }
    for (key, value) in [
        ("dbname", options.get_database()),
        ("application_name", options.get_application_name()),
        ("options", options.get_options()),
    ] {
        if let Some(value) = value {
            add(key, value);
        }
    }
    add("sslmode", "disable");
    text
}

/// What Diesel says where nobody listens; it keeps the rest to itself.
pub(crate) const UNREACHABLE: &str = "error connecting to server";

/// A store of a test of the suite.
pub(crate) fn store_on(pool: impl Into<Pool<AsyncPgConnection>>, table: &OutboxTable) -> AnyStore {
    let set = |store: PostgresStore, setting| match setting {
        Setting::Settling(settling) => store.with_settling(settling),
        Setting::Durability(durability) => store.with_durability(durability),
        Setting::Watermark(watermark) => store.with_watermark(watermark),
        other => panic!("a Postgres store on Diesel has no {other:?}"),
    };
    AnyStore::new(PostgresStore::new(pool, table.clone()).unwrap(), set, |store| Box::pin(store.check()))
}

/// What a session answers, in two columns of text.
pub(crate) async fn pairs(question: &str, session: &mut AsyncPgConnection) -> Vec<(String, String)> {
    let question = diesel::dsl::sql::<(Text, Text)>(question);
    diesel_async::RunQueryDsl::load(question, session).await.unwrap()
}
