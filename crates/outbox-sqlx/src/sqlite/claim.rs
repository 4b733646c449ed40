//! Claiming a tenant: lock, then read; publish with nothing open; mark under the lock.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, Settlement, StoreError, StoreOperation, async_trait,
};
use outbox_sql::dialect::Dialect;
use outbox_sql::row::{RawRow, decode_batch};
use outbox_sql::settlement::{HandedOut, check_marked};
use outbox_sql::sqlite::Hold;
use outbox_sql::sqlite::{json_rows, json_texts};
use sqlx::AssertSqlSafe;

use super::connection::Lent;
use super::error::store_error;
use super::mark::Marking;
use super::row;
use super::store::Shared;
use outbox_sql::deadline::within;

const CLAIM: StoreOperation = StoreOperation::Claim;
const SETTLE: StoreOperation = StoreOperation::Settle;

/// Takes a tenant and reads its oldest messages.
///
/// # Cancellation safety
/// Dropping the future frees the tenant at once. A read that is still running then marks nothing.
pub(super) async fn take(shared: &Arc<Shared>, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
    let mut known = None;
    let place = if let Some(place) = shared.known_place() {
        place
    } else {
        let connection = known.insert(shared.connection(CLAIM).await?);
        shared.place(connection.get().map_err(|error| store_error(CLAIM, error))?, CLAIM).await?
    };
    let hold = Hold::take(place, shared.table.name(), &request.tenant_id);
    let Some(hold) = hold.map_err(|error| error.error(CLAIM))? else { return Ok(ClaimOutcome::Held) };
    let mut connection = match known {
        Some(connection) => connection,
        None => shared.connection(CLAIM).await?,
    };
    shared.refuse_uncommitted(&mut connection, CLAIM).await?;
    super::writable::prove(shared, place, &mut connection).await?;
    // After the lock, in a snapshot of its own: what the last holder marked is marked here, too.
    let rows = read(shared, &mut connection, request).await.map_err(|error| store_error(CLAIM, error))?;
    drop(connection);
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

async fn read(shared: &Shared, connection: &mut Lent, request: &ClaimRequest) -> sqlx::Result<Vec<RawRow>> {
    let (excluded, statements) = (&*request.excluded_subjects, &shared.statements);
    let claim = if excluded.is_empty() { &statements.claim } else { &statements.claim_others };
    let mut query = sqlx::query(AssertSqlSafe(claim.as_str()))
        .bind(request.tenant_id.as_str().to_owned())
        .bind(i64::from(request.limit.get()))
        .bind(i64::try_from(request.max_bytes).unwrap_or(i64::MAX));
    if !excluded.is_empty() {
        query = query.bind(json_texts(excluded.iter().map(String::as_str)));
    }
    let rows = query.fetch_all(connection.get()?).await?;
    Ok(rows.iter().map(row::message).collect())
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
/// [`Marking`] keeps the tenant until the driver is through with a statement that it has begun.
async fn mark(shared: &Shared, hold: Hold, given: usize, rows: &str) -> Result<(), StoreError> {
    // Somebody deleted the lock file: another may hold the tenant, and mark what it publishes itself. Or somebody
    // replaced the database: its rows are not the ones that were published.
    hold.verify().map_err(|error| error.error(SETTLE))?;
    let connection = shared.connection(SETTLE).await?;
    let mut marking = Marking::new(connection, hold);
    let marked = marking.run(&shared.statements.mark, rows).await;
    let marked = marked.map_err(|error| store_error(SETTLE, error))?;
    shared.verify_place(SETTLE)?;
    check_marked(given, marked, &shared.table.display_name(Dialect::Sqlite))
}
