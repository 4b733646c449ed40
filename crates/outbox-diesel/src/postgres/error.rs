//! What PostgreSQL's errors mean, as far as Diesel hands them on.

use diesel::result::{DatabaseErrorKind, Error};
use outbox_sql::Meaning;
use outbox_sql::postgres::error::{
    APPEND_RIGHTS, NO_ADDRESS, NO_CONNECTION, NO_TLS, meaning, sql_state_of, unreadable,
};

use crate::AppendError;

/// Says why messages were not appended to a table, and what to do.
pub(super) fn append_error(error: Error, table: &str) -> AppendError {
    AppendError::database(meaning_of(&error, table, APPEND_RIGHTS).into_words(), error)
}

/// `rights` are what the operation needs on the table.
pub(super) fn meaning_of(error: &Error, table: &str, rights: &str) -> Meaning {
    use DatabaseErrorKind::{ClosedConnection, UnableToSendCommand};
    match error {
        Error::DatabaseError(ClosedConnection | UnableToSendCommand, said) => unsent(said.message()),
        Error::BrokenTransactionManager => Meaning::may_go_away(NO_CONNECTION),
        Error::DatabaseError(kind, said) => {
            let message = &*outbox_sql::meaning::said(said.message());
            match sql_state(*kind, said.message()) {
                Some("42P05" | "26000") => Meaning::stays(format!(
                    "{message}: a transaction pooler that keeps no track of prepared statements is in between, \
                     connect directly"
                )),
                Some(code) => meaning(code, message, table, rights),
                None => Meaning::may_go_away(format!(
                    "PostgreSQL could not run the statement ({message}); if it stays so, ask check()"
                )),
            }
        }
        _ => unreadable(table),
    }
}

/// What it means that nothing could be sent. Only the text tells a wrong configuration from a lost connection.
fn unsent(message: &str) -> Meaning {
    if message.starts_with("invalid connection string") || message.starts_with("invalid configuration") {
        Meaning::stays(NO_ADDRESS)
    } else if message.contains("TLS") {
        Meaning::stays(NO_TLS)
    } else {
        Meaning::may_go_away(NO_CONNECTION)
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
