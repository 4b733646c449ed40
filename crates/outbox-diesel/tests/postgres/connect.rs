//! From how sqlx connects, which the tests are written with, to how `diesel-async` does.

use std::fmt::Write as _;

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
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
