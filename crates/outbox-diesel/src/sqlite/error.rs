//! What SQLite's errors mean to the relay, as far as Diesel hands them on.

use diesel::result::Error;
use outbox_sql::Meaning;
use outbox_sql::sqlite::meaning;

use crate::AppendError;

/// Why a statement of the store was not run, or failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Query(#[from] Error),
    #[error(transparent)]
    Connect(#[from] diesel::ConnectionError),
    #[cfg(any(feature = "bb8", feature = "deadpool"))]
    #[error("{}", outbox_sql::meaning::said(.0))]
    NoConnection(String),
    #[cfg(feature = "deadpool")]
    #[error("the pool is closed")]
    PoolClosed,
    #[error("the statement was not run to its end")]
    Ended,
}

impl Failure {
    /// Whether another connection is writing, and trying again is all there is to do.
    pub(super) fn is_busy(&self) -> bool {
        self.code().is_some_and(meaning::is_busy)
    }

    /// The same of a connection that shares its cache, and for which SQLite does not wait.
    pub(super) fn is_locked(&self) -> bool {
        self.code().is_some_and(meaning::is_locked)
    }

    fn code(&self) -> Option<u32> {
        match self {
            Self::Query(error) => code(error),
            Self::Connect(diesel::ConnectionError::BadConnection(text)) => meaning::code_of(text),
            _ => None,
        }
    }

    /// What it means, and what to do about it.
    pub(super) fn meaning(&self) -> Meaning {
        match self {
            #[cfg(any(feature = "bb8", feature = "deadpool"))]
            Self::NoConnection(_) => meaning::NO_CONNECTION,
            #[cfg(feature = "deadpool")]
            Self::PoolClosed => meaning::POOL_CLOSED,
            Self::Ended => meaning::DRIVER_ENDED,
            Self::Query(error) => meaning_of(error),
            Self::Connect(_) => meaning::meaning(self.code()),
        }
    }
}

/// Says why messages were not appended, and what to do.
pub(super) fn append_error(error: Error) -> AppendError {
    AppendError::database(meaning_of(&error).into_words(), error)
}

fn meaning_of(error: &Error) -> Meaning {
    use diesel::result::DatabaseErrorKind::{ClosedConnection, UnableToSendCommand};
    match error {
        Error::DatabaseError(ClosedConnection | UnableToSendCommand, _) => meaning::DRIVER_ENDED,
        error => meaning::meaning(code(error)),
    }
}

/// SQLite's result code, which Diesel keeps to itself: by the text.
fn code(error: &Error) -> Option<u32> {
    match error {
        Error::DatabaseError(_, database) => meaning::code_of(database.message()),
        _ => None,
    }
}
