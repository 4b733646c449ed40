//! What PostgreSQL's errors mean, by their SQLSTATE.

use outbox_core::Settling;

use crate::meaning::{Meaning, said};
pub use crate::meaning::{POOL_IS_BUSY, POOL_IS_CLOSED};

/// What the relay's role needs on the table.
pub const fn relay_rights(settling: Settling) -> &'static str {
    match settling {
        Settling::Delete => "SELECT and DELETE",
        _ => "SELECT and UPDATE",
    }
}

/// What an append needs on a table.
pub const APPEND_RIGHTS: &str = "INSERT, and SELECT of the id,";

/// There is no connection, or no longer.
pub const NO_CONNECTION: &str = "the connection to PostgreSQL was lost or could not be made";

/// What the server's error of this SQLSTATE means. `table` is for a person to read, `rights` are what the operation
/// needs on it.
pub fn meaning(code: &str, message: &str, table: &str, rights: &str) -> Meaning {
    permanent(code, &said(message), table, rights)
        .map_or_else(|| Meaning::may_go_away(transient(code)), Meaning::stays)
}

/// What an answer means that is not what was asked for.
pub fn unreadable(table: &str) -> Meaning {
    Meaning::stays(format!("what PostgreSQL answered about {table} could not be read: check the table"))
}

/// What to do about an error that stays.
fn permanent(code: &str, message: &str, table: &str, rights: &str) -> Option<String> {
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

/// What an error that may go away means.
fn transient(code: &str) -> &'static str {
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

/// The SQLSTATE that a message in English belongs to, for a driver that hands on the message alone. `None` of one that
/// is not known, or in another language.
pub fn sql_state_of(message: &str) -> Option<&'static str> {
    let has = |parts: &[&str]| parts.iter().all(|part| message.contains(part));
    MESSAGES.iter().find(|(_, parts)| has(parts)).map(|(code, _)| *code)
}

/// What the messages have in them. The first that fits counts.
const MESSAGES: [(&str, &[&str]); 26] = [
    ("42P05", &["prepared statement", "already exists"]),
    ("26000", &["prepared statement", "does not exist"]),
    ("3D000", &["database \"", "does not exist"]),
    ("3F000", &["schema \"", "does not exist"]),
    ("42703", &["column ", "does not exist"]),
    ("42P01", &["relation \"", "does not exist"]),
    ("42883", &["operator does not exist"]),
    ("42883", &["function ", "does not exist"]),
    ("42804", &["is of type", "but expression is of type"]),
    ("42846", &["cannot cast type"]),
    ("42501", &["permission denied"]),
    ("42501", &["row-level security policy"]),
    ("25006", &["read-only transaction"]),
    ("0A000", &["during recovery"]),
    ("28P01", &["password authentication failed"]),
    ("28000", &["role \"", "does not exist"]),
    ("28000", &["is not permitted to log in"]),
    ("28000", &["no pg_hba.conf entry"]),
    ("55P03", &["lock timeout"]),
    ("55P03", &["could not obtain lock"]),
    ("40P01", &["deadlock detected"]),
    ("57014", &["canceling statement"]),
    ("57P01", &["terminating connection"]),
    ("57P03", &["the database system is"]),
    ("53300", &["connection slots are reserved"]),
    ("53300", &["too many"]),
];
