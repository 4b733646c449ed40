//! What SQLite's errors mean to the relay.

use outbox_sql::Meaning;
use outbox_sql::sqlite::meaning;

use crate::AppendError;

fn code(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// Whether another connection is writing, and trying again is all there is to do.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    code(error).is_some_and(meaning::is_busy)
}

/// Says why messages were not appended, and what to do.
pub(super) fn append_error(error: sqlx::Error) -> AppendError {
    AppendError::database(meaning_of(&error).into_words(), error)
}

pub(super) fn meaning_of(error: &sqlx::Error) -> Meaning {
    match error {
        sqlx::Error::PoolTimedOut => meaning::NO_CONNECTION,
        sqlx::Error::PoolClosed => meaning::POOL_CLOSED,
        sqlx::Error::Io(_) => Meaning::may_go_away("the database cannot be reached"),
        sqlx::Error::WorkerCrashed => meaning::DRIVER_ENDED,
        _ => meaning::meaning(code(error)),
    }
}
