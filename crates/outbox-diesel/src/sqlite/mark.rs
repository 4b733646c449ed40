//! Marking under the lock: the job that marks owns the lock, so that it unlocks when it is through, whether
//! somebody still waits for it or not.

use std::sync::Arc;

use diesel::RunQueryDsl;
use diesel::sql_types::{Text, Untyped};
use outbox_sql::sqlite::{Hold, Pauses};

use super::error::Failure;
use super::store::Shared;
use crate::statement::Statement;

/// Runs the statement until it is done or fails for another reason than that the database is busy with a longer
/// write; answers how many rows it marked. Frees the tenant.
///
/// # Cancellation safety
/// The statement in flight may still mark its rows, and frees the tenant afterwards; no further one starts.
pub(super) async fn run(shared: &Arc<Shared>, mut hold: Hold, rows: &str) -> Result<u64, Failure> {
    let mut pauses = Pauses::default();
    loop {
        let (shared_too, rows) = (Arc::clone(shared), rows.to_owned());
        let attempt = shared.connections.run(move |connection| {
            let statement = Statement::<_, Untyped>::new(&shared_too.statements.mark).bind::<Text>(rows);
            let outcome = RunQueryDsl::execute(statement, connection);
            // Back with the answer, or dropped with it.
            Ok((outcome, hold))
        });
        let (outcome, back) = attempt.await?;
        match outcome.map_err(Failure::Query) {
            Err(failure) if failure.is_busy() => tokio::time::sleep(pauses.next_pause()).await,
            outcome => return outcome.map(|marked| u64::try_from(marked).unwrap_or(u64::MAX)),
        }
        hold = back;
    }
}
