//! What PostgreSQL's errors mean, as far as Diesel hands them on.

use diesel::result::{DatabaseErrorKind, Error};
use outbox_sql::Meaning;
use outbox_sql::dialect::postgres::error::{APPEND_RIGHTS, NO_CONNECTION, meaning, sql_state_of, unreadable};

use crate::AppendError;

/// Says why messages were not appended to a table, and what to do.
pub(super) fn append_error(error: Error, table: &str) -> AppendError {
    AppendError::database(meaning_of(&error, table, APPEND_RIGHTS).into_words(), error)
}

/// `rights` are what the operation needs on the table.
fn meaning_of(error: &Error, table: &str, rights: &str) -> Meaning {
    use DatabaseErrorKind::{ClosedConnection, UnableToSendCommand};
    match error {
        Error::DatabaseError(ClosedConnection | UnableToSendCommand, _) | Error::BrokenTransactionManager => {
            Meaning::may_go_away(NO_CONNECTION)
        }
        Error::DatabaseError(kind, database) => {
            let message = database.message();
            meaning(sql_state(*kind, message).unwrap_or_default(), message, table, rights)
        }
        _ => unreadable(table),
    }
}

/// The SQLSTATE of an error, which Diesel keeps to itself: by its kind, and else by its text in English. `None` if
/// neither tells.
fn sql_state(kind: DatabaseErrorKind, message: &str) -> Option<&'static str> {
    Some(match kind {
        DatabaseErrorKind::UniqueViolation => "23505",
        DatabaseErrorKind::ForeignKeyViolation => "23503",
        DatabaseErrorKind::RestrictViolation => "23001",
        DatabaseErrorKind::ExclusionViolation => "23P01",
        DatabaseErrorKind::NotNullViolation => "23502",
        DatabaseErrorKind::CheckViolation => "23514",
        DatabaseErrorKind::SerializationFailure => "40001",
        DatabaseErrorKind::ReadOnlyTransaction => "25006",
        _ => return sql_state_of(message),
    })
}
