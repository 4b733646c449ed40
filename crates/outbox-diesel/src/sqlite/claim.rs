//! Claiming a tenant: lock, then read; publish with nothing open; mark under the lock.

use std::sync::Arc;
use std::time::Duration;

use diesel::sql_types::{BigInt, Text};
use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, Settlement, StoreError, StoreOperation, async_trait,
};
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::row::{RawRow, decode_batch};
use outbox_sql::settlement::{HandedOut, check_marked};
use outbox_sql::sqlite::Hold;
use outbox_sql::sqlite::{json_rows, json_texts};

use super::error::{Failure, store_error};
use super::row::{self, Values};
use super::store::Shared;
use super::{mark, writable};
use crate::statement::Statement;

const CLAIM: StoreOperation = StoreOperation::Claim;
const SETTLE: StoreOperation = StoreOperation::Settle;

/// Takes a tenant and reads its oldest messages.
///
/// # Cancellation safety
/// Dropping the future frees the tenant at once. A read that is still running then marks nothing.
pub(super) async fn take(shared: &Arc<Shared>, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
    let place = shared.place(CLAIM).await?;
    let hold = Hold::take(place, shared.table.name(), &request.tenant_id);
    let Some(hold) = hold.map_err(|error| error.error(CLAIM))? else { return Ok(ClaimOutcome::Held) };
    writable::prove(shared, place).await?;
    // After the lock, in a snapshot of its own: what the last holder marked is marked here, too.
    let rows = read(shared, request).await.map_err(|failure| store_error(CLAIM, failure))?;
    // The connection may have been opened since, or long before the file was replaced.
    hold.verify().map_err(|error| error.error(CLAIM))?;
    let messages = decode_batch(rows, &shared.table, Dialect::Sqlite, CLAIM)?;
    let claim = SqliteClaim {
        shared: Arc::clone(shared),
        handed_out: HandedOut::of(&messages),
        timeout: request.timeout,
        hold,
    };
    Ok(ClaimOutcome::Claimed(Claimed::new(messages, Box::new(claim))))
}

async fn read(shared: &Arc<Shared>, request: &ClaimRequest) -> Result<Vec<RawRow>, Failure> {
    let (tenant, limit) = (request.tenant_id.clone(), i64::from(request.limit.get()));
    let max_bytes = i64::try_from(request.max_bytes).unwrap_or(i64::MAX);
    let excluded = &*request.excluded_subjects;
    let excluded = (!excluded.is_empty()).then(|| json_texts(excluded.iter().map(String::as_str)));
    let rows = shared.read(move |shared, connection| {
        let statements = &shared.statements;
        let claim = if excluded.is_some() { &statements.claim_others } else { &statements.claim };
        let statement = Statement::new(claim)
            .bind::<Text>(tenant.as_str())
            .bind::<BigInt>(limit)
            .bind::<BigInt>(max_bytes);
        let statement = match &excluded {
            Some(excluded) => statement.bind::<Text>(excluded.as_str()),
            None => statement,
        };
        row::read(connection, statement, Values::message)
    });
    rows.await
}

/// A tenant held by its lock. No transaction is open, and no connection is held.
struct SqliteClaim {
    shared: Arc<Shared>,
    handed_out: HandedOut,
    timeout: Duration,
    hold: Hold,
}

#[async_trait]
impl Claim for SqliteClaim {
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
        let outcome = within(timeout, SETTLE, mark(&shared, hold, published.len(), &rows)).await;
        if outcome.is_err() {
            // Whatever the reason: the next claim asks again whether anything can be marked.
            shared.writable.set(false);
        }
        outcome
    }
}

/// Marks under the lock, then frees the tenant.
///
/// # Cancellation safety
/// [`mark::run`] keeps the tenant until a statement that has begun is through.
async fn mark(shared: &Arc<Shared>, hold: Hold, given: usize, rows: &str) -> Result<(), StoreError> {
    // Somebody deleted the lock file: another may hold the tenant, and mark what it publishes itself. Or somebody
    // replaced the database: its rows are not the ones that were published.
    hold.verify().map_err(|error| error.error(SETTLE))?;
    let marked = mark::run(shared, hold, rows).await;
    let marked = marked.map_err(|failure| store_error(SETTLE, failure))?;
    shared.verify_place(SETTLE)?;
    check_marked(given, marked, &shared.table.display_name(Dialect::Sqlite))
}
