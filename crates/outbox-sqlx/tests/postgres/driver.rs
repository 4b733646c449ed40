//! How the stores and pools on sqlx are made.

use std::any::Any;
use std::sync::Arc;

use outbox_core::{NewMessage, async_trait};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::{PostgresStore, PostgresTable};
use outbox_suite::postgres::Driver;
use outbox_suite::server::{Cut, Open, Pool, ServerDriver};
use outbox_suite::{AnyStore, Setting};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, PgPool};

#[derive(Default)]
pub(crate) struct OnSqlx;

/// For the tests that are of sqlx alone.
pub(crate) fn driver() -> Driver {
    Driver::of::<OnSqlx>(module_path!())
}

impl ServerDriver<PgConnectOptions> for OnSqlx {
    fn open(&self, open: Open<PgConnectOptions>) -> Arc<dyn Pool> {
        let mut pool = PgPoolOptions::new().max_connections(open.size).min_connections(open.keeps_one.into());
        if let Some(after) = open.retires {
            pool = pool.max_lifetime(after).idle_timeout(after / 2);
        }
        Arc::new(Pooled(pool.connect_lazy_with(open.options)))
    }

    fn variants(&self) -> Vec<Setting> {
        vec![Setting::WithoutNamedStatements]
    }

    fn unreachable(&self) -> Option<&'static str> {
        Some("refused")
    }
}

struct Pooled(PgPool);

#[async_trait]
impl Pool for Pooled {
    fn store(&self, table: &OutboxTable) -> AnyStore {
        let set = |store: PostgresStore, setting| match setting {
            Setting::Settling(settling) => store.with_settling(settling),
            Setting::Durability(durability) => store.with_durability(durability),
            Setting::Watermark(watermark) => store.with_watermark(watermark),
            Setting::WithoutNamedStatements => store.without_named_statements(),
            other @ Setting::MaxSilence(_) => panic!("a PostgreSQL store on sqlx has no {other:?}"),
        };
        let store = PostgresStore::new(self.0.clone(), table.clone()).unwrap();
        AnyStore::new(store, set, |store| Box::pin(store.check()))
    }

    async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = PostgresTable::new(table.clone()).unwrap();
        table.append(&mut self.0.acquire().await.unwrap(), message).await.unwrap().get()
    }

    async fn append_in_transaction(&self, table: &OutboxTable, message: &NewMessage, cut: Cut) {
        let table = PostgresTable::new(table.clone()).unwrap();
        let mut connection = self.0.acquire().await.unwrap();
        let mut transaction = connection.begin().await.unwrap();
        if let Some(appended) = cut.run(table.append(&mut transaction, message)).await {
            appended.unwrap();
            transaction.commit().await.unwrap();
        }
    }

    async fn pairs(&self, question: &str) -> Vec<(String, String)> {
        sqlx::query_as(AssertSqlSafe(question.to_owned())).fetch_all(&self.0).await.unwrap()
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
