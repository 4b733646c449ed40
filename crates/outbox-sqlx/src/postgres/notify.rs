//! Waking relays in other processes, from the writer's side.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::text::with_causes;
use outbox_sql::postgres::wake;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::ArmedConnection;
use super::PostgresTable;
use crate::runtime::runtime;

/// How long hints are gathered, by default.
const INTERVAL: Duration = Duration::from_millis(15);
/// How long a hint may take; by then a poll has found what it was about.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Tells relays in other processes that something was committed, in a statement of its own beside the writer's
/// transactions, and at most once in a while.
///
/// A `NOTIFY` inside of the writers' transactions makes their commits queue up, each for a flush of its own. This
/// one is outside of them: the first hint after a quiet time goes out at once, further ones are gathered. Nobody
/// waits for it; one that fails is dropped, for the relay polls.
#[derive(Debug, Clone)]
pub struct PostgresNotifier {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    hint: Arc<Notify>,
    task: JoinHandle<Infallible>,
}

impl PostgresNotifier {
    /// Tells of this table, through a pool of which it takes a connection for each hint. Hints are gathered for
    /// 15 ms.
    ///
    /// # Errors
    /// [`sqlx::Error::Configuration`] outside of a tokio runtime.
    pub fn start(pool: PgPool, table: &PostgresTable) -> sqlx::Result<Self> {
        Self::start_with_interval(pool, table, INTERVAL)
    }

    /// As [`start`](Self::start), with the time for which hints are gathered: at most one goes out in each. More
    /// spares the server, less makes a busy relay see new messages earlier.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_with_interval(
        pool: PgPool,
        table: &PostgresTable,
        interval: Duration,
    ) -> sqlx::Result<Self> {
        let hint = Arc::new(Notify::new());
        let work =
            keep_notifying(pool, wake::notify(table.description()).into(), Arc::clone(&hint), interval);
        let task = runtime()?.spawn(work);
        Ok(Self { shared: Arc::new(Shared { hint, task }) })
    }

    /// Says that something was committed. Call it after the commit was answered: a hint from before makes the relay
    /// look too early.
    ///
    /// It never blocks and never fails; calls that come close together count as one.
    pub fn notify(&self) {
        self.shared.hint.notify_one();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep_notifying(
    pool: PgPool,
    statement: Arc<str>,
    hint: Arc<Notify>,
    interval: Duration,
) -> Infallible {
    let mut failing = false;
    loop {
        hint.notified().await;
        let outcome = timeout(TIMEOUT, notify(&pool, Arc::clone(&statement))).await;
        let outcome = outcome.unwrap_or_else(|_| Err(sqlx::Error::PoolTimedOut));
        match outcome {
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(
                    error = with_causes(&error),
                    "no hints reach the outbox relays; they poll meanwhile"
                );
            }
            Ok(()) if failing => {
                failing = false;
                tracing::info!("hints reach the outbox relays again");
            }
            _ => {}
        }
        sleep(interval).await;
    }
}

async fn notify(pool: &PgPool, statement: Arc<str>) -> sqlx::Result<()> {
    let mut connection = ArmedConnection::acquire(pool).await?;
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection.get()?).await?;
    connection.give_back();
    Ok(())
}
