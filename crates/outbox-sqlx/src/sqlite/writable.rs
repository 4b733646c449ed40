//! Whether the database takes writes: what cannot be marked must not be published.

use std::path::Path;
use std::time::Duration;

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::sqlite::Place;
use outbox_sql::sqlite::SqliteStatements;
use outbox_sql::sqlite::writable::{self, ASK_QUERY_ONLY};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::connection::Lent;
use super::error::{is_busy, store_error};
use super::store::Shared;

const CLAIM: StoreOperation = StoreOperation::Claim;

/// Proves it once for the store, and again after a settlement that failed.
pub(super) async fn prove(shared: &Shared, place: &Place, connection: &mut Lent) -> Result<(), StoreError> {
    if shared.writable.is_known() {
        return Ok(());
    }
    let query_only = is_query_only(connection).await.map_err(|error| store_error(CLAIM, error))?;
    if query_only {
        return Err(writable::query_only(CLAIM));
    }
    if let Place::File(file) = place {
        match write_nothing(shared, file.path()).await {
            Err(error) if !is_busy(&error) => return Err(store_error(CLAIM, error)),
            // Another is writing at this moment, so it can be written to.
            _ => {}
        }
    }
    shared.writable.set(true);
    Ok(())
}

async fn is_query_only(connection: &mut Lent) -> sqlx::Result<bool> {
    let value: i64 = sqlx::query_scalar(ASK_QUERY_ONLY).fetch_one(connection.get()?).await?;
    Ok(value != 0)
}

/// A statement that changes no row, but needs the right to write. On a connection of its own, straight to the
/// file, which does not wait for a writer: a claim never waits.
async fn write_nothing(shared: &Shared, path: &Path) -> sqlx::Result<()> {
    // What the pool's connections may have attached under another name is the main database here.
    let statements = SqliteStatements::new(&shared.table.clone().with_schema("main"))
        .map_err(|error| sqlx::Error::Configuration(Box::new(error)))?;
    let options = shared.pool.connect_options().as_ref().clone();
    let mut connection = options.filename(path).busy_timeout(Duration::ZERO).connect().await?;
    let outcome = sqlx::query(AssertSqlSafe(statements.prove_writable)).execute(&mut connection).await;
    connection.close().await?;
    outcome.map(drop)
}
