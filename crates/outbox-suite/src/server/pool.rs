//! A pool of any kind, as the tests know it.

use std::any::Any;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use outbox_core::{NewMessage, async_trait};
use outbox_sql::OutboxTable;

use crate::AnyStore;

/// A pool of an ORM's connections.
#[async_trait]
pub trait Pool: Send + Sync + 'static {
    /// A store on it.
    fn store(&self, table: &OutboxTable) -> AnyStore;

    /// The application's own write on a connection of the pool, in no transaction. Answers its id.
    async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64;

    /// The application's own write, in a transaction. What the cut does not let end is rolled back.
    async fn append_in_transaction(&self, table: &OutboxTable, message: &NewMessage, cut: Cut);

    /// What a session of the pool answers, in two columns of text.
    async fn pairs(&self, question: &str) -> Vec<(String, String)>;

    /// Takes a connection, and keeps it until the answer is dropped.
    ///
    /// # Errors
    /// The pool's own, as text.
    async fn lend(&self) -> Result<Box<dyn Any + Send>, String>;

    /// How many connections it has.
    fn size(&self) -> u32;

    /// How many it may have.
    fn max_size(&self) -> u32;

    /// Closes what is open; what closes itself, once nobody has it any more, need not be.
    async fn close(&self);
}

/// A pool of any kind. A clone is the same pool.
#[derive(Clone)]
pub struct StorePool(Arc<dyn Pool>);

impl StorePool {
    pub(crate) fn new(pool: Arc<dyn Pool>) -> Self {
        Self(pool)
    }

    /// A store on it.
    pub fn store(&self, table: &OutboxTable) -> AnyStore {
        self.0.store(table).on(self.clone())
    }

    /// The pool of a store that was made by one.
    pub(crate) fn of(store: &AnyStore) -> Self {
        store.pool().expect("a pool made the store").clone()
    }

    pub(crate) async fn append(&self, table: &OutboxTable, message: &NewMessage) -> i64 {
        self.0.append(table, message).await
    }

    pub(crate) async fn append_in_transaction(&self, table: &OutboxTable, message: &NewMessage, cut: Cut) {
        self.0.append_in_transaction(table, message, cut).await;
    }

    pub(crate) async fn pairs(&self, question: &str) -> Vec<(String, String)> {
        self.0.pairs(question).await
    }

    pub(crate) async fn lend(&self) -> Result<Box<dyn Any + Send>, String> {
        self.0.lend().await
    }

    pub(crate) fn size(&self) -> u32 {
        self.0.size()
    }

    pub(crate) fn max_size(&self) -> u32 {
        self.0.max_size()
    }

    /// Closes what is open.
    pub async fn close(&self) {
        self.0.close().await;
    }
}

/// Where a future is dropped: after a time, or after so many polls.
#[derive(Debug, Clone, Copy)]
pub enum Cut {
    /// After this time.
    After(Duration),
    /// After so many polls.
    Polls(u32),
}

impl Cut {
    /// One by chance.
    pub(crate) fn draw(random: &mut Rng) -> Self {
        if random.bool() {
            Self::After(Duration::from_micros(random.u64(0..2_500)))
        } else {
            Self::Polls(random.u32(0..12))
        }
    }

    /// Lets a future run until then, and drops it. `None` if it had not ended.
    pub async fn run<F: Future>(self, future: F) -> Option<F::Output> {
        let mut polls = match self {
            Self::After(time) => return tokio::time::timeout(time, future).await.ok(),
            Self::Polls(polls) => polls,
        };
        let mut future = pin!(future);
        poll_fn(|context| {
            if polls == 0 {
                return Poll::Ready(None);
            }
            polls -= 1;
            match future.as_mut().poll(context) {
                // The last one: what it waits for is still under way when it is dropped.
                Poll::Pending if polls == 0 => Poll::Ready(None),
                answer => answer.map(Some),
            }
        })
        .await
    }
}
