//! What MySQL's and MariaDB's errors mean, by their numbers.

use crate::meaning::{Meaning, said};
pub use crate::meaning::{POOL_IS_BUSY, POOL_IS_CLOSED};

pub use crate::postgres::error::relay_rights;
/// What an append needs on a table.
pub const APPEND_RIGHTS: &str = "INSERT";

/// There is no connection, or no longer.
pub const NO_CONNECTION: &str = "the connection to the server was lost or could not be made: see that it runs at the address that the relay has";
/// The server and the driver do not agree on TLS.
pub const NO_TLS: &str = "no TLS connection to the server could be made: build the driver with TLS, and see that the \
    server has it and that its certificate is trusted; or set ssl-mode=disabled where the network is safe";
/// What the driver was given is no address.
pub const NO_ADDRESS: &str = "the connection's configuration is wrong: correct the URL or the options";

const DEADLOCK: u16 = 1213;
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const DUPLICATE_KEY: u16 = 1062;

/// Whether a row of the claims could not be added or locked because another transaction was about to, or has.
pub fn is_conflict(number: u16) -> bool {
    matches!(number, DEADLOCK | LOCK_WAIT_TIMEOUT | DUPLICATE_KEY)
}

/// What the server's error of this number means. `table` is for a person to read, `rights` are what the operation
/// needs on it.
pub fn meaning(number: u16, message: &str, table: &str, rights: &str) -> Meaning {
    transient(number).map_or_else(
        || Meaning::stays(permanent(number, &said(message), table, rights)),
        Meaning::may_go_away,
    )
}

/// What an answer means that is not what was asked for.
pub fn unreadable(table: &str) -> Meaning {
    Meaning::stays(format!("what the server answered about {table} could not be read: check the table"))
}

/// What an error that may go away means.
fn transient(number: u16) -> Option<&'static str> {
    Some(match number {
        DEADLOCK | 1020 => "the transaction conflicted with another",
        LOCK_WAIT_TIMEOUT | 3572 => "the table or a row was locked for longer than the operation may take",
        1969 | 3024 => "the statement took longer than the operation may take",
        1317 => "the server cancelled the statement",
        1927 | 1053 | 1079 | 1080 | 4031 => "the server ended the session",
        1040 | 1203 | 1226 => "the server has no connection left for this user",
        1047 => "this node of the cluster is not ready",
        1041 | 1037 | 1038 | 1114 | 1021 | 3 | 28 => "the server has too little memory or disk",
        1568 => "a transaction was open on the connection that the pool gave out",
        1158..=1161 => "the connection to the server was lost",
        _ => return None,
    })
}

/// What to do about an error that stays.
fn permanent(number: u16, message: &str, table: &str, rights: &str) -> String {
    match number {
        1146 => format!(
            "{message}: create {table} and its table of claims (the DDL, the migration), or correct schema, name or \
             database"
        ),
        1049 => {
            format!(
                "{message}: correct the name of the database in the connection's URL, or the schema of {table}"
            )
        }
        1046 => format!("the connection has no database: name one in the URL, or as the schema of {table}"),
        1054 => format!("{table} lacks a column: {message}"),
        1044 | 1142 | 1143 | 1227 | 1370 => {
            format!(
                "{message}: grant {rights} on {table}, and SELECT, INSERT and UPDATE on its table of claims"
            )
        }
        1290 | 1792 | 1836 | 3100 => {
            format!(
                "the server is read-only, so that nothing could be marked: connect to the primary ({message})"
            )
        }
        1665 => format!(
            "the server's binary log is in the format STATEMENT, which READ COMMITTED cannot write: set \
             binlog_format to ROW or MIXED ({message})"
        ),
        1130 => format!("the server refused the login: {message}: let the user connect from this host"),
        1045 | 1698 | 1251 | 1873 => {
            format!(
                "the server refused the login: {message}: correct user and password in the connection's URL, or connect with \
                 TLS if server or user requires it"
            )
        }
        3159 => {
            format!("the server wants TLS: {message}: build the driver with TLS, and set ssl-mode=required")
        }
        1064 | 1193 | 1235 | 1305 | 4161 => format!(
            "the server does not know what the store says: it has to be MariaDB from 10.6 or MySQL from 8.0.14 \
             ({message})"
        ),
        1153 | 1301 => format!("the message is larger than the server's max_allowed_packet: {message}"),
        _ => format!("{table}: {message}"),
    }
}

/// The number that a message in English belongs to, for a driver that hands on the message alone. `None` of one that
/// is not known, or in another language.
pub fn number_of(message: &str) -> Option<u16> {
    let has = |parts: &[&str]| parts.iter().all(|part| message.contains(part));
    MESSAGES.iter().find(|(_, parts)| has(parts)).map(|(number, _)| *number)
}

/// What the messages have in them. The first that fits counts.
const MESSAGES: [(u16, &[&str]); 44] = [
    (DEADLOCK, &["Deadlock found"]),
    (LOCK_WAIT_TIMEOUT, &["Lock wait timeout exceeded"]),
    (DUPLICATE_KEY, &["Duplicate entry"]),
    (1020, &["Record has changed since last read"]),
    (3572, &["lock(s) could not be acquired immediately"]),
    (1969, &["max_statement_time exceeded"]),
    (3024, &["maximum statement execution time exceeded"]),
    (1317, &["Query execution was interrupted"]),
    (1927, &["Connection was killed"]),
    (1053, &["shutdown in progress"]),
    (1080, &["Forcing close of thread"]),
    (4031, &["disconnected by the server because of inactivity"]),
    (1040, &["Too many connections"]),
    (1203, &["max_user_connections"]),
    (1226, &["has exceeded the", "resource"]),
    (1047, &["WSREP has not yet prepared node"]),
    (1665, &["BINLOG_FORMAT = STATEMENT"]),
    (1038, &["Out of sort memory"]),
    (1037, &["Out of memory"]),
    (1114, &["The table", "is full"]),
    (1021, &["Disk full"]),
    (1021, &["No space left on device"]),
    (1568, &["Transaction characteristics can't be changed while a transaction is in progress"]),
    (1160, &["communication packets"]),
    (1146, &["Table", "doesn't exist"]),
    (1049, &["Unknown database"]),
    (1046, &["No database selected"]),
    (1054, &["Unknown column"]),
    (1142, &["command denied to user", "for table"]),
    (1143, &["command denied to user", "for column"]),
    (1370, &["command denied to user", "for routine"]),
    (1227, &["Access denied; you need"]),
    (1044, &["Access denied for user", "to database"]),
    (1045, &["Access denied for user"]),
    (3159, &["Connections using insecure transport are prohibited"]),
    (1290, &["running with the", "read-only option"]),
    (1290, &["running with the", "read_only option"]),
    (1290, &["running with the", "super-read-only option"]),
    (1792, &["Cannot execute statement in a READ ONLY transaction"]),
    (1836, &["Running in read-only mode"]),
    (1130, &["is not allowed to connect to this"]),
    (1064, &["You have an error in your SQL syntax"]),
    (1193, &["Unknown system variable"]),
    (1153, &["max_allowed_packet"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_and_lost_sessions_may_go_away() {
        for number in [DEADLOCK, LOCK_WAIT_TIMEOUT, 1317, 1927, 1040, 1053, 1969, 3024] {
            assert!(matches!(meaning(number, "", "t", ""), Meaning::MayGoAway(_)), "{number}");
        }
    }

    #[test]
    fn a_message_is_known_by_its_words() {
        let known = [
            (1213, "Deadlock found when trying to get lock; try restarting transaction"),
            (1969, "Query execution was interrupted (max_statement_time exceeded)"),
            (3024, "Query execution was interrupted, maximum statement execution time exceeded"),
            (1317, "Query execution was interrupted"),
            (1142, "UPDATE command denied to user 'a'@'b' for table `d`.`t`"),
            (1143, "UPDATE command denied to user 'a'@'b' for column 'c' in table 't'"),
            (1044, "Access denied for user 'a'@'b' to database 'd'"),
            (1045, "Access denied for user 'a'@'b' (using password: NO)"),
            (
                1290,
                "The MariaDB server is running with the --read-only option so it cannot execute this statement",
            ),
            (1146, "Table 'd.t' doesn't exist"),
        ];
        for (number, message) in known {
            assert_eq!(number_of(message), Some(number), "{message}");
        }
        assert_eq!(number_of("Duplikat"), None);
    }

    #[test]
    fn what_stays_says_what_to_do() {
        let what = |number| meaning(number, "denied", "db.t", "SELECT and UPDATE").into_words();
        assert!(what(1142).contains("grant SELECT and UPDATE on db.t"));
        assert!(what(1290).contains("connect to the primary"));
        assert!(what(1146).contains("create db.t"));
        assert_eq!(what(1406), "db.t: denied");
    }
}
