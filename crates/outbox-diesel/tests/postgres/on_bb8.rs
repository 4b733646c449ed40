//! On bb8.

use std::any::Any;
use std::sync::Arc;

use diesel_async::pooled_connection::bb8;
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, TransactionManager as _};
use outbox_core::{NewMessage, Settling, async_trait};
use outbox_diesel::OutboxTable;
use outbox_diesel::postgres::PostgresTable;
use outbox_suite::postgres::eager;
use outbox_suite::server::{Cut, Open, Pool, ServerDriver};
use outbox_suite::{AnyStore, postgres_laws, postgres_suite};
use sqlx::postgres::PgConnectOptions;

use crate::connect::{self, manager, store_on};

postgres_suite!(OnBb8);

postgres_laws!(conformance, OnBb8, "postgres on diesel and bb8", store => store);
postgres_laws!(deleting, OnBb8, "postgres on diesel and bb8, deleting", store =>
    store.with_settling(Settling::Delete), "DELETE");
postgres_laws!(with_watermark, OnBb8, "postgres on diesel and bb8, with a watermark", store =>
    store.with_watermark(eager()));

#[derive(Default)]
pub(crate) struct OnBb8;

impl ServerDriver<PgConnectOptions> for OnBb8 {
    fn open(&self, open: Open<PgConnectOptions>) -> Arc<dyn Pool> {
        let mut pool = bb8::Pool::builder().max_size(open.size).min_idle(u32::from(open.keeps_one));
        if let Some(after) = open.retires {
            pool = pool.max_lifetime(after).idle_timeout(after / 2).reaper_rate(after / 2);
        }
        Arc::new(Pooled(pool.build_unchecked(manager(&open.options))))
    }

    fn unreachable(&self) -> Option<&'static str> {
        Some(connect::UNREACHABLE)
    }
}

struct Pooled(bb8::Pool<AsyncPgConnection>);

#[async_trait]
impl Pool for Pooled {
    fn store(&self, table: &OutboxTable) -> AnyStore {
        store_on(self.0.clone(), table)
    }

    async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        let table = PostgresTable::new(table.clone()).unwrap();
        table.append(message).execute_async(&mut *self.0.get().await.unwrap()).await.unwrap().get()
    }

    async fn append_in_transaction(&self, table: &OutboxTable, message: &NewMessage, cut: Cut) {
        let table = PostgresTable::new(table.clone()).unwrap();
        let mut connection = self.0.get().await.unwrap();
        AnsiTransactionManager::begin_transaction(&mut *connection).await.unwrap();
        if let Some(appended) = cut.run(table.append(message).execute_async(&mut *connection)).await {
            appended.unwrap();
            AnsiTransactionManager::commit_transaction(&mut *connection).await.unwrap();
        } else {
            AnsiTransactionManager::rollback_transaction(&mut *connection).await.unwrap();
        }
    }

    async fn pairs(&self, question: &str) -> Vec<(String, String)> {
        connect::pairs(question, &mut self.0.get().await.unwrap()).await
    }

    async fn lend(&self) -> Result<Box<dyn Any + Send>, String> {
        let lent = self.0.get_owned().await.map_err(|error| error.to_string())?;
        Ok(Box::new(lent))
    }

    fn size(&self) -> u32 {
        self.0.state().connections
    }

    fn max_size(&self) -> u32 {
        self.0.config().max_size
    }

    /// It is closed when nobody has it any more.
    async fn close(&self) {}
}
