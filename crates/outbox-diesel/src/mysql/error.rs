//! What MySQL's and MariaDB's errors mean, as far as Diesel hands them on.

use diesel::result::{DatabaseErrorKind, Error};
use outbox_sql::Meaning;
use outbox_sql::mysql::error::{APPEND_RIGHTS, NO_CONNECTION, meaning, number_of, unreadable};

use crate::AppendError;

#[cfg(feature = "async")]
pub(super) use self::relay::{Context, is_conflict};

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

#[cfg(feature = "async")]
mod relay {
    use diesel::result::Error;
    use outbox_core::{Settling, StoreError, StoreOperation};
    use outbox_sql::mysql::error::{self, NO_CONNECTION, relay_rights};

    use super::{meaning_of, number};
    use crate::connection::Failure;

    /// What an operation was about, for its errors.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Context<'a> {
        pub(crate) operation: StoreOperation,
        /// Schema and table, for a person to read.
        pub(crate) table: &'a str,
        /// What the store does with a published row, which decides the rights that it needs.
        pub(crate) settling: Settling,
    }

    impl Context<'_> {
        /// Says what a driver's error means, and what to do.
        pub(crate) fn error(self, failure: Failure) -> StoreError {
            let rights = relay_rights(self.settling);
            let meaning = failure.meaning(|error| meaning_of(error, self.table, rights), NO_CONNECTION);
            meaning.store_error(self.operation, failure)
        }
    }

    /// Whether a row of the claims could not be added or locked because another was faster.
    pub(crate) fn is_conflict(failure: &Failure) -> bool {
        let Failure::Database(Error::DatabaseError(kind, said)) = failure else { return false };
        number(*kind, said.message()).is_some_and(error::is_conflict)
    }
}
