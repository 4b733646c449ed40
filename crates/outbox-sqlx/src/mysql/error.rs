//! What MySQL's and MariaDB's errors mean to the relay.

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::dialect::mysql::{self, Meaning};
use sqlx::mysql::MySqlDatabaseError;

use crate::AppendError;

/// What an operation was about, for its errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) operation: StoreOperation,
    /// Schema and table, for a person to read.
    pub(super) table: &'a str,
}

impl Context<'_> {
    /// Says what a driver's error means, and what to do.
    pub(super) fn error(self, error: sqlx::Error) -> StoreError {
        let meaning = match meaning(&error, self.table, "SELECT and UPDATE") {
            Meaning::Stays(what) => StoreError::permanent(self.operation, what),
            Meaning::MayGoAway(what) => StoreError::transient(self.operation, what),
        };
        meaning.with_source(error)
    }
}

/// Says why messages were not appended to a table, and what to do.
pub(super) fn append_error(error: sqlx::Error, table: &str) -> AppendError {
    let reason = match meaning(&error, table, "INSERT") {
        Meaning::Stays(what) => what,
        Meaning::MayGoAway(what) => what.to_owned(),
    };
    AppendError::Database { reason, source: error }
}

/// Whether a tenant's row could not be added to the claims because another was faster.
pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
    number(error).is_some_and(mysql::is_conflict)
}

fn number(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(error.number())
}

/// `rights` are what the operation needs on the table.
fn meaning(error: &sqlx::Error, table: &str, rights: &str) -> Meaning {
    use Meaning::{MayGoAway, Stays};
    match error {
        sqlx::Error::PoolTimedOut => MayGoAway(
            "no connection of the pool was free in time: give the relay a pool of its own, or a larger one",
        ),
        sqlx::Error::PoolClosed => Stays("the pool is closed".to_owned()),
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => {
            MayGoAway("the connection to the server was lost or could not be made")
        }
        sqlx::Error::Tls(_) => Stays("no TLS connection to the server could be made".to_owned()),
        sqlx::Error::Configuration(_) => Stays("the connection's configuration is wrong".to_owned()),
        sqlx::Error::Database(database) => {
            let number = number(error).unwrap_or_default();
            mysql::meaning(number, database.message(), table, rights)
        }
        _ => Stays(format!("what the server answered about {table} could not be read: check the table")),
    }
}
