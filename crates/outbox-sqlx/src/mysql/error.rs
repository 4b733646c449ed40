//! What MySQL's and MariaDB's errors mean to the relay.

use outbox_sql::Meaning;
use outbox_sql::mysql::error::{
    APPEND_RIGHTS, NO_ADDRESS, NO_CONNECTION, NO_TLS, POOL_IS_BUSY, POOL_IS_CLOSED, meaning, unreadable,
};
use sqlx::mysql::MySqlDatabaseError;

use crate::AppendError;

/// Says why messages were not appended to a table, and what to do.
pub(super) fn append_error(error: sqlx::Error, table: &str) -> AppendError {
    AppendError::database(meaning_of(&error, table, APPEND_RIGHTS).into_words(), error)
}

pub(super) fn number(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(error.number())
}

/// `rights` are what the operation needs on the table.
pub(super) fn meaning_of(error: &sqlx::Error, table: &str, rights: &str) -> Meaning {
    match error {
        sqlx::Error::PoolTimedOut => Meaning::may_go_away(POOL_IS_BUSY),
        sqlx::Error::PoolClosed => Meaning::stays(POOL_IS_CLOSED),
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => {
            Meaning::may_go_away(NO_CONNECTION)
        }
        sqlx::Error::Tls(_) => Meaning::stays(NO_TLS),
        sqlx::Error::Configuration(_) => Meaning::stays(NO_ADDRESS),
        sqlx::Error::Database(database) => {
            meaning(number(error).unwrap_or_default(), database.message(), table, rights)
        }
        _ => unreadable(table),
    }
}
