//! What SQLite's errors mean to the relay, and what to do.

use outbox_core::{StoreError, StoreOperation};

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

/// What an error means, in words that say what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Trying again does not help.
    Stays(&'static str),
    /// Trying again may help.
    MayGoAway(&'static str),
}

impl Meaning {
    /// No connection of a pool was free in time.
    pub const NO_CONNECTION: Self = Self::MayGoAway(
        "no connection of the pool was free in time: give the relay a pool of its own, or a larger one",
    );
    /// The pool is closed.
    pub const POOL_CLOSED: Self = Self::Stays("the pool is closed");
    /// Whoever runs the driver's statements is gone.
    pub const DRIVER_ENDED: Self = Self::MayGoAway("the driver's thread has ended");

    /// What a result code of SQLite means; only its lower 8 bits, the primary code, count.
    pub fn of(code: Option<u32>) -> Self {
        match code.map(primary) {
            Some(BUSY | LOCKED) => {
                Self::MayGoAway("the database is locked by a writer: keep write transactions short, use WAL")
            }
            Some(NO_MEMORY | INTERRUPTED | INPUT_OUTPUT | PROTOCOL | SCHEMA) => {
                Self::MayGoAway("SQLite could not run the statement")
            }
            Some(FULL) => Self::MayGoAway("the disk is full"),
            Some(CANNOT_OPEN) => Self::MayGoAway("the database's file cannot be opened"),
            Some(READ_ONLY) => Self::Stays(
                "the database is read-only, and nothing could be marked or appended: open it to write, and let \
                 its file and directory be writable",
            ),
            Some(ERROR) => Self::Stays(
                "the statement does not fit the database: create or migrate the outbox table; check() says what \
                 it lacks",
            ),
            _ => Self::Stays("SQLite refused the statement"),
        }
    }

    /// The words.
    pub fn text(self) -> &'static str {
        let (Self::Stays(text) | Self::MayGoAway(text)) = self;
        text
    }

    /// The failure of an operation.
    pub fn error(self, operation: StoreOperation) -> StoreError {
        match self {
            Self::Stays(text) => StoreError::permanent(operation, text),
            Self::MayGoAway(text) => StoreError::transient(operation, text),
        }
    }
}

/// Whether a result code says that another connection is writing, and trying again is all there is to do.
pub fn is_busy(code: u32) -> bool {
    matches!(primary(code), BUSY | LOCKED)
}

const fn primary(code: u32) -> u32 {
    code & 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_code_means_what_its_primary_code_does() {
        let busy_snapshot = 517;
        assert!(is_busy(busy_snapshot));
        assert_eq!(Meaning::of(Some(busy_snapshot)), Meaning::of(Some(BUSY)));
        assert!(matches!(Meaning::of(Some(BUSY)), Meaning::MayGoAway(_)));
        assert!(matches!(Meaning::of(None), Meaning::Stays(_)));
    }
}
