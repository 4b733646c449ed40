//! What SQLite's errors mean to the relay.

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::file_lock::FileLockError;
use sqlx::error::DatabaseError;

use super::place::NoPlace;
use crate::AppendError;

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

/// SQLite's primary result code, without what it adds in the higher bits.
fn primary_code(error: &dyn DatabaseError) -> Option<u32> {
    error.code()?.parse::<u32>().ok().map(|code| code & 0xff)
}

fn code(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error().and_then(primary_code)
}

/// Whether another connection is writing, and trying again is all there is to do.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(BUSY | LOCKED))
}

/// Says what a driver's error means for an operation, and what to do.
pub(super) fn store_error(operation: StoreOperation, error: sqlx::Error) -> StoreError {
    let meaning = match meaning(&error) {
        Meaning::Stays(what) => StoreError::permanent(operation, what),
        Meaning::MayGoAway(what) => StoreError::transient(operation, what),
    };
    meaning.with_source(error)
}

/// Says why messages were not appended, and what to do.
pub(super) fn append_error(error: sqlx::Error) -> AppendError {
    let (Meaning::Stays(what) | Meaning::MayGoAway(what)) = meaning(&error);
    AppendError::Database { reason: what.to_owned(), source: error }
}

/// What an error means, and whether trying again may help.
enum Meaning {
    Stays(&'static str),
    MayGoAway(&'static str),
}

fn meaning(error: &sqlx::Error) -> Meaning {
    use Meaning::{MayGoAway, Stays};
    match error {
        sqlx::Error::PoolTimedOut => MayGoAway(
            "no connection of the pool was free in time: give the relay a pool of its own, or a larger one",
        ),
        sqlx::Error::PoolClosed => Stays("the pool is closed"),
        sqlx::Error::Io(_) => MayGoAway("the database cannot be reached"),
        sqlx::Error::WorkerCrashed => MayGoAway("the driver's thread has ended"),
        _ => match code(error) {
            Some(BUSY | LOCKED) => {
                MayGoAway("the database is locked by a writer: keep write transactions short, use WAL")
            }
            Some(NO_MEMORY | INTERRUPTED | INPUT_OUTPUT | PROTOCOL | SCHEMA) => {
                MayGoAway("SQLite could not run the statement")
            }
            Some(FULL) => MayGoAway("the disk is full"),
            Some(CANNOT_OPEN) => MayGoAway("the database's file cannot be opened"),
            Some(READ_ONLY) => Stays(
                "the database is read-only, and nothing could be marked or appended: open it to write, and let its file \
                 and directory be writable",
            ),
            Some(ERROR) => Stays(
                "the statement does not fit the database: create or migrate the outbox table; check() says what \
                 it lacks",
            ),
            _ => Stays("SQLite refused the statement"),
        },
    }
}

/// A lock file that does not serve.
pub(super) fn lock_error(operation: StoreOperation, error: FileLockError) -> StoreError {
    let message = error.to_string();
    match error {
        FileLockError::Replaced { .. } => StoreError::transient(operation, message),
        error => StoreError::permanent(operation, message).with_source(error),
    }
}

/// A database that cannot be claimed from.
pub(super) fn place_error(operation: StoreOperation, error: NoPlace) -> StoreError {
    match error {
        NoPlace::Silent(error) => store_error(operation, error),
        error => StoreError::permanent(operation, error.to_string()),
    }
}
