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
pub const NO_CONNECTION: &str = "the connection to PostgreSQL was lost or could not be made: see that it runs at the address that the relay has";
/// The server and the driver do not agree on TLS.
pub const NO_TLS: &str = "no TLS connection to PostgreSQL could be made: build the driver with TLS, and see that the \
    server has it and that its certificate is trusted; or set sslmode=disable where the network is safe";
/// What the driver was given is no address.
pub const NO_ADDRESS: &str = "the connection's configuration is wrong: correct the URL or the options";

/// What the server's error of this SQLSTATE means. `table` is for a person to read, `rights` are what the operation
/// needs on it.
pub fn meaning(code: &str, message: &str, table: &str, rights: &str) -> Meaning {
    permanent(code, &said(message), table, rights)
        .map_or_else(|| Meaning::may_go_away(transient(code)), Meaning::stays)
}

/// What it means that a statement without a name was not there any more, where none has one.
pub fn pooled_by_statement(message: &str) -> Meaning {
    let message = said(message);
    Meaning::stays(format!(
        "{message}: a pooler that takes sessions back within a transaction is in between: pool by transaction (PgBouncer's \
         pool_mode = transaction), or connect directly"
    ))
}

/// What an answer means that is not what was asked for.
pub fn unreadable(table: &str) -> Meaning {
    Meaning::stays(format!("what PostgreSQL answered about {table} could not be read: check the table"))
}

/// What to do about an error that stays.
fn permanent(code: &str, message: &str, table: &str, rights: &str) -> Option<String> {
    Some(match code {
        "42P01" | "3F000" => {
            format!(
                "{table} does not exist: create it (its DDL, its migration), or correct schema, name or database"
            )
        }
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
        // PgBouncer has this one code for nearly all that it says.
        "08P01" => return of_pooler(message),
        "28000" if message.contains("no pg_hba.conf entry") => format!(
            "PostgreSQL refused the login: {message}: add a line to pg_hba.conf, or connect as that file says (with TLS, \
             if it has `no encryption`)"
        ),
        "28000" | "28P01" => {
            format!(
                "PostgreSQL refused the login: {message}: correct user and password in the connection's URL"
            )
        }
        "3D000" => format!("{message}: correct the name of the database in the connection's URL"),
        _ if code.starts_with("22") || code.starts_with("23") || code.starts_with("42") => {
            format!("{table}: {message}")
        }
        _ => return None,
    })
}

/// What to do about an error that `PgBouncer` says itself and that stays.
fn of_pooler(message: &str) -> Option<String> {
    let has = |part: &str| message.contains(part);
    Some(if has("unsupported startup parameter") {
        let parameter = message.rsplit(": ").next().unwrap_or_default();
        format!(
            "PgBouncer refuses a parameter that the driver sends: set ignore_startup_parameters = {parameter} in \
             pgbouncer.ini ({message})"
        )
    } else if has("no such database") || has("does not allow connections") {
        format!(
            "{message}: correct the name of the database in the connection's URL, or in PgBouncer's [databases]"
        )
    } else if has("no such user") || has("auth") {
        format!(
            "PgBouncer refused the login: {message}: correct user and password in the URL, or its auth_file"
        )
    } else if has("SSL required") {
        format!("PgBouncer wants TLS: {message}: build the driver with TLS, and set sslmode=require")
    } else {
        return None;
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
const MESSAGES: [(&str, &[&str]); 30] = [
    ("42P05", &["prepared statement", "already exists"]),
    ("26000", &["prepared statement", "does not exist"]),
    ("08P01", &["unsupported startup parameter"]),
    ("08P01", &["no such database"]),
    ("08P01", &["no such user"]),
    ("08P01", &["SSL required"]),
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
