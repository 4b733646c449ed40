//! What PostgreSQL's errors mean to the relay.

use outbox_sql::Meaning;
use outbox_sql::postgres::error::{
    APPEND_RIGHTS, NO_ADDRESS, NO_CONNECTION, NO_TLS, POOL_IS_BUSY, POOL_IS_CLOSED, meaning,
    pooled_by_statement, unreadable,
};

use crate::AppendError;

/// Says why messages were not appended to a table, and what to do.
pub(super) fn append_error(error: sqlx::Error, table: &str, named: bool) -> AppendError {
    AppendError::database(meaning_of(&error, table, APPEND_RIGHTS, named).into_words(), error)
}

/// `rights` are what the operation needs on the table; `named` is whether statements have names.
pub(super) fn meaning_of(error: &sqlx::Error, table: &str, rights: &str, named: bool) -> Meaning {
    match error {
        sqlx::Error::PoolTimedOut => Meaning::may_go_away(POOL_IS_BUSY),
        sqlx::Error::PoolClosed => Meaning::stays(POOL_IS_CLOSED),
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => {
            Meaning::may_go_away(NO_CONNECTION)
        }
        sqlx::Error::Tls(_) => Meaning::stays(NO_TLS),
        sqlx::Error::Configuration(_) => Meaning::stays(NO_ADDRESS),
        sqlx::Error::Database(database) if !named && database.code().is_some_and(|code| code == "26000") => {
            pooled_by_statement(database.message())
        }
        sqlx::Error::Database(database) => {
            meaning(&database.code().unwrap_or_default(), database.message(), table, rights)
        }
        _ => unreadable(table),
    }
}
