//! What MySQL's and MariaDB's errors mean, as far as Diesel hands them on.

use diesel::result::{DatabaseErrorKind, Error};
use outbox_sql::Meaning;
use outbox_sql::mysql::error::{APPEND_RIGHTS, NO_CONNECTION, meaning, number_of, unreadable};

use crate::AppendError;

/// Says why messages were not appended to a table, and what to do.
pub(super) fn append_error(error: Error, table: &str) -> AppendError {
    AppendError::database(meaning_of(&error, table, APPEND_RIGHTS).into_words(), error)
}

/// `rights` are what the operation needs on the table.
pub(super) fn meaning_of(error: &Error, table: &str, rights: &str) -> Meaning {
    use DatabaseErrorKind::{ClosedConnection, UnableToSendCommand};
    match error {
        Error::DatabaseError(ClosedConnection | UnableToSendCommand, _) | Error::BrokenTransactionManager => {
            Meaning::may_go_away(NO_CONNECTION)
        }
        Error::DatabaseError(kind, said) => {
            let message = said.message();
            match number(*kind, message) {
                Some(number) => meaning(number, message, table, rights),
                None if is_driver(message) => Meaning::may_go_away(NO_CONNECTION),
                None => Meaning::may_go_away(format!(
                    "the server could not run the statement ({}); if it stays so, ask check()",
                    outbox_sql::meaning::said(message)
                )),
            }
        }
        _ => unreadable(table),
    }
}

/// Whether the driver says so, and not the server: there is no other sign of a lost connection.
fn is_driver(message: &str) -> bool {
    ["Input/output error: ", "Driver error: ", "Other error: "].iter().any(|start| message.starts_with(start))
}

/// The number of an error, which Diesel keeps to itself: by its text in English, and else by its kind. `None` if
/// neither tells.
pub(super) fn number(kind: DatabaseErrorKind, message: &str) -> Option<u16> {
    number_of(message).or(match kind {
        DatabaseErrorKind::UniqueViolation => Some(1062),
        DatabaseErrorKind::ForeignKeyViolation => Some(1452),
        DatabaseErrorKind::ReadOnlyTransaction => Some(1792),
        DatabaseErrorKind::NotNullViolation => Some(1048),
        DatabaseErrorKind::CheckViolation => Some(3819),
        _ => None,
    })
}
