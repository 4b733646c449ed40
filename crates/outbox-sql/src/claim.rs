//! A claim on a database server: a session that holds a tenant by its open transaction, whatever the database.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, Claimed, MessageId, OutboxMessage, Settlement, StoreError, StoreOperation,
    async_trait,
};

use crate::deadline::within;
use crate::settlement::{Fate, HandedOut, check_marked};

/// A session that holds a tenant: its transaction is open. Dropping it closes its connection, and the server rolls
/// back; so it ends with any operation of it that fails, or whose future is dropped.
pub(crate) trait Holder: Debug + Sized + Send + 'static {
    /// Hears from the server.
    fn verify(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Marks these messages, or deletes them, commits, and gives the connection back.
    fn mark(self, published: &[MessageId]) -> impl Future<Output = Result<Marked, StoreError>> + Send;

    /// Rolls back, and gives the connection back.
    fn roll_back(self) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What came of marking messages and of the commit after it.
#[derive(Debug)]
pub(crate) struct Marked {
    /// How many rows were marked, or deleted.
    pub(crate) rows: u64,
    /// What became of the transaction.
    pub(crate) fate: Fate,
}

/// Who hears how a claim ended.
pub(crate) trait Ending: Debug + Send + Sync + 'static {
    /// These, in order, of what the claim handed out are about to be settled.
    fn settling(&mut self, handed_out: &HandedOut, settled: &[MessageId]);

    /// The claim ended, and its settlement answered this: what is no error was committed.
    fn ended(&self, answer: &Result<(), StoreError>);
}

/// Nobody.
impl Ending for () {
    fn settling(&mut self, _: &HandedOut, _: &[MessageId]) {}

    fn ended(&self, _: &Result<(), StoreError>) {}
}

impl<E: Ending> Ending for Option<E> {
    fn settling(&mut self, handed_out: &HandedOut, settled: &[MessageId]) {
        if let Some(ending) = self {
            ending.settling(handed_out, settled);
        }
    }

    fn ended(&self, so: &Result<(), StoreError>) {
        if let Some(ending) = self {
            ending.ended(so);
        }
    }
}

/// A tenant that a session holds, as a store answers it.
#[derive(Debug)]
pub(crate) struct Taken<H, E> {
    /// The session.
    pub(crate) holder: H,
    /// Schema and table, for a person to read.
    pub(crate) table: Arc<str>,
    /// How long each operation may take.
    pub(crate) timeout: Duration,
    /// Who hears how the claim ended.
    pub(crate) ending: E,
}

impl<H: Holder, E: Ending> Taken<H, E> {
    /// Hands these messages over, with the claim.
    pub(crate) fn claimed(self, messages: Vec<OutboxMessage>) -> ClaimOutcome {
        let Self { holder, table, timeout, ending } = self;
        let (holder, handed_out) = (Some(holder), HandedOut::of(&messages));
        let claim = ServerClaim { holder, table, timeout, handed_out, ending };
        ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim)))
    }
}

#[derive(Debug)]
struct ServerClaim<H, E> {
    /// `None` once it was lost.
    holder: Option<H>,
    table: Arc<str>,
    timeout: Duration,
    handed_out: HandedOut,
    ending: E,
}

impl<H: Holder, E> ServerClaim<H, E> {
    fn take_holder(&mut self, operation: StoreOperation) -> Result<H, StoreError> {
        let lost = || StoreError::transient(operation, "the session that held the tenant was lost");
        self.holder.take().ok_or_else(lost)
    }

    async fn mark_or_roll_back(&mut self, published: &[MessageId]) -> Result<(), StoreError> {
        let operation = StoreOperation::Settle;
        let holder = self.take_holder(operation)?;
        within(self.timeout, operation, async {
            if published.is_empty() {
                return holder.roll_back().await;
            }
            let marked = holder.mark(published).await?;
            marked.fate.decide()?;
            check_marked(published.len(), marked.rows, &self.table)
        })
        .await
    }
}

#[async_trait]
impl<H: Holder, E: Ending> Claim for ServerClaim<H, E> {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let operation = StoreOperation::Verify;
        // Out of the claim meanwhile: what does not come to its end closes the connection.
        let mut holder = self.take_holder(operation)?;
        let verified = within(self.timeout, operation, holder.verify()).await;
        if verified.is_ok() {
            self.holder = Some(holder);
        } else {
            self.ending.ended(&verified);
        }
        verified
    }

    async fn settle(mut self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let published = self.handed_out.to_mark(settlement)?;
        self.ending.settling(&self.handed_out, &published);
        let settled = self.mark_or_roll_back(&published).await;
        self.ending.ended(&settled);
        settled
    }
}
