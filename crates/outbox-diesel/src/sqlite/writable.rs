//! Whether the database takes writes: what cannot be marked must not be published.

use std::sync::Arc;

use diesel::connection::SimpleConnection;
use diesel::sql_types::{BigInt, Untyped};
use diesel::{RunQueryDsl, SqliteConnection};
use outbox_core::{StoreError, StoreOperation};
use outbox_sql::sqlite::Place;
use outbox_sql::sqlite::check::DESCRIBE_BUSY_TIMEOUT;
use outbox_sql::sqlite::writable::{self, ASK_QUERY_ONLY};

use super::error::{Failure, store_error};
use super::store::Shared;
use crate::statement::Statement;

const CLAIM: StoreOperation = StoreOperation::Claim;

/// Proves it once for the store, and again after a settlement that failed.
pub(super) async fn prove(shared: &Arc<Shared>, place: &Place) -> Result<(), StoreError> {
    if shared.writable.is_known() {
        return Ok(());
    }
    let in_file = matches!(place, Place::File(_));
    let proved = shared.read(move |shared, connection| {
        if number(connection, ASK_QUERY_ONLY)? != 0 {
            return Ok(false);
        }
        match if in_file { write_nothing(shared, connection) } else { Ok(()) } {
            Err(failure) if !failure.is_busy() => Err(failure),
            // Another is writing at this moment, so it can be written to.
            _ => Ok(true),
        }
    });
    if !proved.await.map_err(|failure| store_error(CLAIM, failure))? {
        return Err(writable::query_only(CLAIM));
    }
    shared.writable.set(true);
    Ok(())
}

/// A statement that changes no row, but needs the right to write. It does not wait for a writer: a claim never
/// waits.
fn write_nothing(shared: &Shared, connection: &mut SqliteConnection) -> Result<(), Failure> {
    let busy_timeout = number(connection, DESCRIBE_BUSY_TIMEOUT)?;
    connection.batch_execute("PRAGMA busy_timeout = 0")?;
    let statement = Statement::<_, Untyped>::new(&shared.statements.prove_writable);
    let outcome = RunQueryDsl::execute(statement, connection);
    connection.batch_execute(&format!("PRAGMA busy_timeout = {busy_timeout}"))?;
    outcome?;
    Ok(())
}

fn number(connection: &mut SqliteConnection, statement: &str) -> Result<i64, Failure> {
    Ok(Statement::<_, BigInt>::new(statement).get_result(connection)?)
}
