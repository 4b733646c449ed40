//! Claiming a tenant: lock, then read; publish with nothing open; mark under the lock.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, OutboxMessage, Settlement, StoreError, StoreOperation,
    async_trait,
};

use super::driver::SqliteDriver;
use super::store::{Shared, SqliteStore, refusal};
use super::{Hold, json_rows};
use crate::deadline::within;
use crate::dialect::Dialect;
use crate::driver::{Bind, Question};
use crate::row::decode_batch;
use crate::settlement::{HandedOut, check_marked};

const CLAIM: StoreOperation = StoreOperation::Claim;
const SETTLE: StoreOperation = StoreOperation::Settle;

impl<D: SqliteDriver> SqliteStore<D> {
    /// Takes a tenant and reads its oldest messages.
    ///
    /// # Errors
    /// What the lock, a statement or the decoding answers.
    ///
    /// # Cancellation
    /// Dropping the future frees the tenant at once. A read that is still running then marks nothing.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        within(request.timeout, CLAIM, self.take(request)).await
    }

    async fn take(&self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let shared = &self.shared;
        let place = shared.place(CLAIM).await?;
        let hold = Hold::take(place, shared.table.name(), &request.tenant_id);
        let Some(hold) = hold.map_err(|error| error.error(CLAIM))? else { return Ok(ClaimOutcome::Held) };
        shared.prove_writable(place).await?;
        // After the lock, in a snapshot of its own: what the last holder marked is marked here, too.
        let messages = shared.read(&hold, request).await?;
        let (shared, handed_out) = (Arc::clone(shared), HandedOut::of(&messages));
        let claim = SqliteClaim { shared, handed_out, timeout: request.timeout, hold };
        Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim))))
    }
}

impl<D: SqliteDriver> Shared<D> {
    /// Reads what the tenant has that is held.
    async fn read(&self, hold: &Hold, request: &ClaimRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        let excluded: Vec<&str> = request.excluded_subjects.iter().map(String::as_str).collect();
        let statements = &self.statements;
        let statement = if excluded.is_empty() { &statements.claim } else { &statements.claim_others };
        let binds = [
            Bind::Text(request.tenant_id.as_str()),
            Bind::Integer(i64::from(request.limit.get())),
            Bind::Integer(i64::try_from(request.max_bytes).unwrap_or(i64::MAX)),
            Bind::Texts(&excluded),
        ];
        let binds = if excluded.is_empty() { &binds[..3] } else { &binds };
        let rows = self.driver.read(self.reading(), Question::named(statement, binds)).await;
        let rows = rows.map_err(|refused| refusal::<D>(CLAIM, refused))?;
        // The connection may have been opened since, or long before the file was replaced.
        hold.verify().map_err(|error| error.error(CLAIM))?;
        decode_batch(rows, &self.table, Dialect::Sqlite, CLAIM)
    }

    /// Asks whether the database answers, and still has the table.
    async fn prove_alive(&self, operation: StoreOperation) -> Result<(), StoreError> {
        let question = Question::named(&self.statements.prove_alive, &[]);
        let answer = self.driver.ask(self.reading(), question).await;
        answer.map(drop).map_err(|refused| refusal::<D>(operation, refused))
    }

    /// Marks under the lock, then frees the tenant.
    ///
    /// # Cancellation
    /// The driver keeps the tenant until a statement that has begun is through.
    async fn mark(&self, hold: Hold, given: usize, rows: &str) -> Result<(), StoreError> {
        // Somebody deleted the lock file: another may hold the tenant, and mark what it publishes itself. Or somebody
        // replaced the database: its rows are not the ones that were published.
        hold.verify().map_err(|error| error.error(SETTLE))?;
        let binds = [Bind::Text(rows)];
        let marked = self.driver.mark(Question::named(&self.statements.mark, &binds), hold).await;
        let marked = marked.map_err(|error| D::meaning(&error).store_error(SETTLE, error))?;
        self.verify_place(SETTLE)?;
        check_marked(given, marked, &self.table.display_name(Dialect::Sqlite))
    }
}

/// A tenant held by its lock. No transaction is open, and no connection is held.
struct SqliteClaim<D> {
    shared: Arc<Shared<D>>,
    handed_out: HandedOut,
    timeout: Duration,
    hold: Hold,
}

#[async_trait]
impl<D: SqliteDriver> Claim for SqliteClaim<D> {
    async fn verify(&mut self) -> Result<(), StoreError> {
        self.hold.verify().map_err(|error| error.error(StoreOperation::Verify))?;
        // A database in memory lives where this process does.
        if matches!(self.hold, Hold::Memory(_)) {
            return Ok(());
        }
        let operation = StoreOperation::Verify;
        within(self.timeout, operation, self.shared.prove_alive(operation)).await
    }

    async fn settle(self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let published = self.handed_out.to_mark(settlement)?;
        if published.is_empty() {
            return Ok(());
        }
        let Self { shared, timeout, hold, handed_out } = *self;
        let rows = json_rows(handed_out.rows(&published));
        let outcome = within(timeout, SETTLE, shared.mark(hold, published.len(), &rows)).await;
        if outcome.is_err() {
            // Whatever the reason: the next claim asks again whether anything can be marked.
            shared.writable.set(false);
        }
        outcome
    }
}
