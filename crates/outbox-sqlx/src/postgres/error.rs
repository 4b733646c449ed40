//! What PostgreSQL's errors mean to the relay.

use outbox_core::{StoreError, StoreOperation};

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
    let reason = match meaning(&error, table, "INSERT, and SELECT of the id,") {
        Meaning::Stays(what) => what,
        Meaning::MayGoAway(what) => what.to_owned(),
    };
    AppendError::Database { reason, source: error }
}

/// What an error means, and whether trying again may help.
enum Meaning {
    Stays(String),
    MayGoAway(&'static str),
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
            MayGoAway("the connection to PostgreSQL was lost or could not be made")
        }
        sqlx::Error::Tls(_) => Stays("no TLS connection to PostgreSQL could be made".to_owned()),
        sqlx::Error::Configuration(_) => Stays("the connection's configuration is wrong".to_owned()),
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            permanent_code(&code, database.message(), table, rights)
                .map_or_else(|| MayGoAway(transient_code(&code)), Stays)
        }
        _ => Stays(format!("what PostgreSQL answered about {table} could not be read: check the table")),
    }
}

/// What to do about an error that stays, by its SQLSTATE.
fn permanent_code(code: &str, message: &str, table: &str, rights: &str) -> Option<String> {
    Some(match code {
        "42P01" | "3F000" => format!("{table} does not exist: create it, or correct schema and name"),
        "42703" => format!("{table} lacks a column: {message}"),
        "42883" | "42804" | "42846" => {
            format!("a column of {table} has another type than described: {message}")
        }
        "42501" => format!("{message}: grant {rights} on {table}"),
        "25006" => {
            "the server is read-only, so that nothing could be marked: connect to the primary".to_owned()
        }
        // Older servers say of a standby that it lacks a feature.
        "0A000" if message.contains("recovery") => {
            "the server is a standby, so that nothing could be marked: connect to the primary".to_owned()
        }
        "42P05" | "26000" => format!(
            "{message}: a transaction pooler is in between, use without_named_statements() or connect directly"
        ),
        "28000" | "28P01" => format!("PostgreSQL refused the login: {message}"),
        "3D000" => format!("{message}: correct the name of the database"),
        _ if code.starts_with("22") || code.starts_with("23") || code.starts_with("42") => {
            format!("{table}: {message}")
        }
        _ => return None,
    })
}

/// What an error that may go away means, by its SQLSTATE.
fn transient_code(code: &str) -> &'static str {
    match code {
        "40001" | "40P01" => "the transaction conflicted with another",
        "55P03" => "the table or a row was locked for longer than the operation may take",
        "57014" => "PostgreSQL cancelled the statement",
        "57P01" | "57P02" | "57P05" | "25P03" => "PostgreSQL ended the session",
        "57P03" => "PostgreSQL is starting up or shutting down",
        "53300" => "PostgreSQL has no connection left",
        _ => "PostgreSQL could not run the statement",
    }
}
