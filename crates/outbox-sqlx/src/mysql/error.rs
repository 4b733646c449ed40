//! What MySQL's and MariaDB's errors mean to the relay.

use outbox_core::{Settling, StoreError, StoreOperation};
use outbox_sql::Meaning;
use outbox_sql::mysql::error::{
    self, APPEND_RIGHTS, NO_ADDRESS, NO_CONNECTION, NO_TLS, POOL_IS_BUSY, POOL_IS_CLOSED, meaning,
    relay_rights, unreadable,
};
use sqlx::mysql::MySqlDatabaseError;

use crate::AppendError;

/// What an operation was about, for its errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) operation: StoreOperation,
    /// Schema and table, for a person to read.
    pub(super) table: &'a str,
    /// What the store does with a published row, which decides the rights that it needs.
    pub(super) settling: Settling,
}

impl Context<'_> {
    /// Says what a driver's error means, and what to do.
    pub(super) fn error(self, error: sqlx::Error) -> StoreError {
        meaning_of(&error, self.table, relay_rights(self.settling)).store_error(self.operation, error)
    }
}

/// Says why messages were not appended to a table, and what to do.
pub(super) fn append_error(error: sqlx::Error, table: &str) -> AppendError {
    AppendError::database(meaning_of(&error, table, APPEND_RIGHTS).into_words(), error)
}

/// Whether a row of the claims could not be added or locked because another was faster.
pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
    number(error).is_some_and(error::is_conflict)
}

pub(super) fn number(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(error.number())
}

/// `rights` are what the operation needs on the table.
fn meaning_of(error: &sqlx::Error, table: &str, rights: &str) -> Meaning {
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
