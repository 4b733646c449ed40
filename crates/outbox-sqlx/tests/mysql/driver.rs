//! How the stores and pools on sqlx are made.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{NewMessage, async_trait};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::mysql::{MySqlStore, MySqlTable};
use outbox_suite::mysql::Driver;
use outbox_suite::server::{Cut, Open, Pool, ServerDriver};
use outbox_suite::{AnyStore, Setting};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, MySqlPool};

#[derive(Default)]
pub(crate) struct OnSqlx;

/// For the tests that are of sqlx alone.
pub(crate) fn driver() -> Driver {
    Driver::of::<OnSqlx>(module_path!())
}

impl ServerDriver<MySqlConnectOptions> for OnSqlx {
    fn open(&self, open: Open<MySqlConnectOptions>) -> Arc<dyn Pool> {
        // A server takes some 150 connections, and a random story opens a pool for each of its replicas.
        let idle = Duration::from_secs(1);
        let mut pool =
            MySqlPoolOptions::new().max_connections(open.size).min_connections(open.keeps_one.into());
        pool = match open.retires {
            Some(after) => pool.max_lifetime(after).idle_timeout(after / 2),
            // A session that begins in its own way is asked afterwards whether it is the same.
            None if open.begin.is_empty() => pool.idle_timeout(idle),
            None => pool,
        };
        if !open.begin.is_empty() {
            pool = pool.after_connect(move |session, _| {
                Box::pin(async move { sqlx::raw_sql(open.begin).execute(session).await.map(drop) })
            });
        }
        Arc::new(Pooled(pool.connect_lazy_with(open.options)))
    }
}

struct Pooled(MySqlPool);

#[async_trait]
impl Pool for Pooled {
    fn store(&self, table: &OutboxTable) -> AnyStore {
        let set = |store: MySqlStore, setting| match setting {
            Setting::Settling(settling) => store.with_settling(settling),
            Setting::MaxSilence(silence) => store.with_max_silence(silence),
            other => panic!("a MySQL store on sqlx has no {other:?}"),
        };
        let store = MySqlStore::new(self.0.clone(), table.clone()).unwrap();
        AnyStore::new(store, set, |store| Box::pin(store.check()))
    }

    async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = MySqlTable::new(table.clone()).unwrap();
        table.append(&mut self.0.acquire().await.unwrap(), message).await.unwrap().get()
    }

    async fn append_in_transaction(&self, table: &OutboxTable, message: &NewMessage, cut: Cut) {
        let table = MySqlTable::new(table.clone()).unwrap();
        let mut connection = self.0.acquire().await.unwrap();
        let mut transaction = connection.begin().await.unwrap();
        let appended = cut.run(table.append(&mut transaction, message)).await;
        if let Some(appended) = appended {
            appended.unwrap();
            transaction.commit().await.unwrap();
        } else {
            drop(transaction);
            // The driver may never get such a connection back into its pool, whoever cut its query.
            drop(connection.detach());
        }
    }

    async fn pairs(&self, question: &str) -> Vec<(String, String)> {
        let question = sqlx::query_as(AssertSqlSafe(question.to_owned()));
        question.persistent(false).fetch_all(&self.0).await.unwrap()
    }

    async fn lend(&self) -> Result<Box<dyn Any + Send>, String> {
        let lent = self.0.acquire().await.map_err(|error| error.to_string())?;
        Ok(Box::new(lent))
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    fn max_size(&self) -> u32 {
        self.0.options().get_max_connections()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
