//! What SQLite's errors mean to the relay, and what to do.

use std::borrow::Cow;

use crate::meaning::Meaning;

const ERROR: u32 = 1;
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const NO_MEMORY: u32 = 7;
const READ_ONLY: u32 = 8;
const INTERRUPTED: u32 = 9;
const INPUT_OUTPUT: u32 = 10;
const FULL: u32 = 13;
const CANNOT_OPEN: u32 = 14;
const PROTOCOL: u32 = 15;
const SCHEMA: u32 = 17;

/// No connection of a pool was free in time.
pub const NO_CONNECTION: Meaning = may_go_away(
    "no connection of the pool was free in time: give the relay a pool of its own, or a larger one",
);
/// The pool is closed.
pub const POOL_CLOSED: Meaning = stays("the pool is closed");
/// Whoever runs the driver's statements is gone.
pub const DRIVER_ENDED: Meaning = may_go_away("the driver's thread has ended");

/// Asks whether a connection reads what others have not committed: 0 if it does not.
pub const ASK_READ_UNCOMMITTED: &str = "SELECT read_uncommitted FROM main.pragma_read_uncommitted";
/// It does.
pub const READ_UNCOMMITTED: Meaning = stays(
    "a connection of the pool reads what others have not committed (PRAGMA read_uncommitted), and would publish what \
     is rolled back: give the relay a pool without it",
);

/// What a result code of SQLite means; only its lower 8 bits, the primary code, count.
pub fn meaning(code: Option<u32>) -> Meaning {
    match code.map(primary) {
        Some(BUSY | LOCKED) => {
            may_go_away("the database is locked by a writer: keep write transactions short, use WAL")
        }
        Some(NO_MEMORY | INTERRUPTED | INPUT_OUTPUT | PROTOCOL | SCHEMA) => {
            may_go_away("SQLite could not run the statement")
        }
        Some(FULL) => may_go_away("the disk is full"),
        Some(CANNOT_OPEN) => may_go_away("the database's file cannot be opened"),
        Some(READ_ONLY) => stays(
            "the database is read-only, and nothing could be marked or appended: open it to write, and let its \
             file and directory be writable",
        ),
        Some(ERROR) => stays(
            "the statement does not fit the database: create or migrate the outbox table; check() says what it \
             lacks",
        ),
        _ => stays("SQLite refused the statement"),
    }
}

const fn stays(what: &'static str) -> Meaning {
    Meaning::Stays(Cow::Borrowed(what))
}

const fn may_go_away(what: &'static str) -> Meaning {
    Meaning::MayGoAway(Cow::Borrowed(what))
}

/// Whether a result code says that another connection is writing, and trying again is all there is to do.
pub fn is_busy(code: u32) -> bool {
    matches!(primary(code), BUSY | LOCKED)
}

/// Whether a result code says that a connection of the same shared cache is writing, for which SQLite does not
/// wait whatever its busy timeout.
pub fn is_locked(code: u32) -> bool {
    primary(code) == LOCKED
}

const fn primary(code: u32) -> u32 {
    code & 0xff
}

/// How SQLite's texts begin, for the codes that it has nothing else to say about, and for statements that do not
/// fit the database.
const TEXTS: &[(&str, u32)] = &[
    ("database is locked", BUSY),
    ("database table is locked", LOCKED),
    ("database schema is locked", LOCKED),
    ("out of memory", NO_MEMORY),
    ("attempt to write a readonly database", READ_ONLY),
    ("interrupted", INTERRUPTED),
    ("disk I/O error", INPUT_OUTPUT),
    ("database or disk is full", FULL),
    ("unable to open database", CANNOT_OPEN),
    ("locking protocol", PROTOCOL),
    ("database schema has changed", SCHEMA),
    ("no such table", ERROR),
    ("no such column", ERROR),
    ("no such function", ERROR),
    ("unknown database", ERROR),
    ("near \"", ERROR),
    ("SQL logic error", ERROR),
];

/// The primary result code behind an error's text, for drivers that keep the code to themselves. `None` if the
/// text does not tell.
pub fn code_of(text: &str) -> Option<u32> {
    if text.starts_with("table ") && text.contains(" has no column named ") {
        return Some(ERROR);
    }
    TEXTS.iter().find(|(begin, _)| text.starts_with(begin)).map(|(_, code)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_code_means_what_its_primary_code_does() {
        let busy_snapshot = 517;
        assert!(is_busy(busy_snapshot) && !is_locked(busy_snapshot));
        assert_eq!(meaning(Some(busy_snapshot)), meaning(Some(BUSY)));
        assert!(matches!(meaning(Some(BUSY)), Meaning::MayGoAway(_)));
        assert!(matches!(meaning(None), Meaning::Stays(_)));
    }

    #[test]
    fn a_text_tells_the_code() {
        assert_eq!(code_of("database table is locked: outbox_message"), Some(LOCKED));
        assert_eq!(code_of("table main.outbox_message has no column named kind"), Some(ERROR));
        assert_eq!(code_of("UNIQUE constraint failed: outbox_message.id"), None);
    }
}
