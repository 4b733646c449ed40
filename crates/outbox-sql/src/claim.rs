//! A claim on a database server: a session that holds a tenant by its open transaction, whatever the driver.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, Claimed, MessageId, OutboxMessage, Settlement, Settling, StoreError, StoreOperation,
    async_trait,
};

use crate::deadline::within;
use crate::postgres::watermark::Remembering;
use crate::settlement::{HandedOut, check_committed, check_marked};

/// A session that holds a tenant: its transaction is open. Dropping it closes its connection, and the server rolls
/// back; so it ends with any operation of it that fails, or whose future is dropped.
pub trait Holder: Debug + Sized + Send + 'static {
    /// What the driver fails with.
    type Error: Send;

    /// Says what an error means, and what to do, to a store of this table that settles so.
    fn error(error: Self::Error, operation: StoreOperation, table: &str, settling: Settling) -> StoreError;

    /// Hears from the server.
    fn verify(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Marks these messages, or deletes them, commits, and gives the connection back.
    fn mark(self, published: Vec<MessageId>) -> impl Future<Output = Result<Marked, Self::Error>> + Send;

    /// Rolls back, and gives the connection back.
    fn roll_back(self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// What came of marking messages and of the commit after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// How many rows were marked, or deleted.
    pub rows: u64,
    /// Whether the transaction committed. A server can answer a `COMMIT` by rolling back.
    pub committed: bool,
}

/// A tenant that a session holds, as a store answers it.
#[derive(Debug)]
pub struct Taken<H> {
    /// The session.
    pub holder: H,
    /// Schema and table, for a person to read.
    pub table: Arc<str>,
    /// What becomes of a published row.
    pub settling: Settling,
    /// How long each operation may take.
    pub timeout: Duration,
    /// `None` if the store has no watermarks.
    pub remembering: Option<Remembering>,
}

impl<H: Holder> Taken<H> {
    /// Hands these messages over, with the claim.
    pub fn claimed(self, messages: Vec<OutboxMessage>) -> ClaimOutcome {
        let Self { holder, table, settling, timeout, remembering } = self;
        let (holder, handed_out) = (Some(holder), HandedOut::of(&messages));
        let claim = ServerClaim { holder, table, settling, timeout, handed_out, remembering };
        ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim)))
    }
}

#[derive(Debug)]
struct ServerClaim<H> {
    /// `None` once it was lost.
    holder: Option<H>,
    table: Arc<str>,
    settling: Settling,
    timeout: Duration,
    handed_out: HandedOut,
    remembering: Option<Remembering>,
}

impl<H: Holder> ServerClaim<H> {
    fn take_holder(&mut self, operation: StoreOperation) -> Result<H, StoreError> {
        let lost = || StoreError::transient(operation, "the session that held the tenant was lost");
        self.holder.take().ok_or_else(lost)
    }

    async fn mark_or_roll_back(&mut self, published: Vec<MessageId>) -> Result<(), StoreError> {
        let operation = StoreOperation::Settle;
        let holder = self.take_holder(operation)?;
        let failed = |error| H::error(error, operation, &self.table, self.settling);
        within(self.timeout, operation, async {
            if published.is_empty() {
                return holder.roll_back().await.map_err(failed);
            }
            let given = published.len();
            let marked = holder.mark(published).await.map_err(failed)?;
            check_committed(marked.committed)?;
            check_marked(given, marked.rows, &self.table)
        })
        .await
    }
}

#[async_trait]
impl<H: Holder> Claim for ServerClaim<H> {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let operation = StoreOperation::Verify;
        // Out of the claim meanwhile: what does not come to its end closes the connection.
        let mut holder = self.take_holder(operation)?;
        let verified = within(self.timeout, operation, async {
            match holder.verify().await {
                Ok(()) => Ok(holder),
                Err(error) => Err(H::error(error, operation, &self.table, self.settling)),
            }
        });
        match verified.await {
            Ok(holder) => self.holder = Some(holder),
            Err(error) => {
                if let Some(remembering) = &self.remembering {
                    remembering.forget();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    async fn settle(mut self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let published = self.handed_out.to_mark(settlement)?;
        let remembering = self.remembering.take();
        let remembering = remembering.map(|remembering| remembering.settling(&self.handed_out, &published));
        let settled = self.mark_or_roll_back(published).await;
        if let Some(remembering) = remembering {
            remembering.settled(&settled);
        }
        settled
    }
}
