//! What SQLite's errors mean to the relay.

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::sqlite::{Meaning, meaning};

use crate::AppendError;

fn code(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// Whether another connection is writing, and trying again is all there is to do.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    code(error).is_some_and(meaning::is_busy)
}

/// Says what a driver's error means for an operation, and what to do.
pub(super) fn store_error(operation: StoreOperation, error: sqlx::Error) -> StoreError {
    meaning_of(&error).error(operation).with_source(error)
}

/// Says why messages were not appended, and what to do.
pub(super) fn append_error(error: sqlx::Error) -> AppendError {
    AppendError::database(meaning_of(&error).text(), error)
}

fn meaning_of(error: &sqlx::Error) -> Meaning {
    match error {
        sqlx::Error::PoolTimedOut => Meaning::NO_CONNECTION,
        sqlx::Error::PoolClosed => Meaning::POOL_CLOSED,
        sqlx::Error::Io(_) => Meaning::MayGoAway("the database cannot be reached"),
        sqlx::Error::WorkerCrashed => Meaning::DRIVER_ENDED,
        _ => Meaning::of(code(error)),
    }
}
