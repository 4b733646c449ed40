//! What the drivers of both pools share: from how sqlx connects, which the tests are written with, to how `diesel-async`
//! does, and stores.

use diesel::sql_types::Text;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use diesel_async::{AsyncConnection as _, AsyncMysqlConnection, SimpleAsyncConnection as _};
use outbox_diesel::OutboxTable;
use outbox_diesel::mysql::MySqlStore;
use outbox_diesel::pool::Pool;
use outbox_suite::{AnyStore, Setting};
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

/// A store of a test of the suite.
pub(crate) fn store_on(pool: impl Into<Pool<AsyncMysqlConnection>>, table: &OutboxTable) -> AnyStore {
    let set = |store: MySqlStore, setting| match setting {
        Setting::Settling(settling) => store.with_settling(settling),
        Setting::MaxSilence(silence) => store.with_max_silence(silence),
        other => panic!("a MySql store on Diesel has no {other:?}"),
    };
    AnyStore::new(MySqlStore::new(pool, table.clone()).unwrap(), set, |store| Box::pin(store.check()))
}

/// What a session answers, in two columns of text.
pub(crate) async fn pairs(question: &str, session: &mut AsyncMysqlConnection) -> Vec<(String, String)> {
    let question = diesel::dsl::sql::<(Text, Text)>(question);
    diesel_async::RunQueryDsl::load(question, session).await.unwrap()
}
