//! From how sqlx connects, which the tests are written with, to how `diesel-async` does.

use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use diesel_async::{AsyncConnection as _, AsyncMysqlConnection, SimpleAsyncConnection as _};
use sqlx::ConnectOptions as _;
use sqlx::mysql::MySqlConnectOptions;

/// A manager that connects like this, and begins each session with this statement, if it is one. Connections are not
/// asked whether they live: what they meet is the store's.
pub(crate) fn manager(
    options: &MySqlConnectOptions,
    begin: &'static str,
) -> AsyncDieselConnectionManager<AsyncMysqlConnection> {
    let mut config = ManagerConfig::default();
    config.recycling_method = RecyclingMethod::Fast;
    config.custom_setup = Box::new(move |url| {
        let url = url.to_owned();
        Box::pin(async move {
            let mut connection = AsyncMysqlConnection::establish(&url).await?;
            if !begin.is_empty() {
                let answer = connection.batch_execute(begin).await;
                answer.map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            }
            Ok(connection)
        })
    });
    AsyncDieselConnectionManager::new_with_config(url(options), config)
}

/// As a URL. The driver would leave the address for the server's socket, and with it a proxy.
pub(crate) fn url(options: &MySqlConnectOptions) -> String {
    let mut url = options.to_url_lossy();
    url.set_query(Some("prefer_socket=false"));
    url.into()
}
