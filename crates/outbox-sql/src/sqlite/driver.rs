//! What SQLite's drivers are asked. No session is kept: a claim has nothing open while it publishes.

use std::fmt::Debug;
use std::path::Path;

use super::{Hold, OpenedAs, SqliteStatements};
use crate::driver::{Answer, Question};
use crate::meaning::Meaning;
use crate::row::{RawRow, Unreadable};
use crate::table::OutboxTable;

/// What the statements of a store run on.
pub trait SqliteDriver: Debug + Clone + Send + Sync + 'static {
    /// What it fails with.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Asks for rows of a few small values, on a connection that [suits](Reading).
    fn ask(
        &self,
        reading: Reading,
        question: Question<'_>,
    ) -> impl Future<Output = Result<Vec<Answer>, Refused<Self::Error>>> + Send;

    /// Reads messages, on a connection that suits.
    fn read(
        &self,
        reading: Reading,
        question: Question<'_>,
    ) -> impl Future<Output = Result<Vec<RawRow>, Refused<Self::Error>>> + Send;

    /// Marks until it is done or fails for another reason than that the database is busy with a longer write; answers
    /// how many rows it were. Frees the tenant: where the future is dropped, not before a statement that has begun is
    /// through, and no further one starts.
    fn mark(&self, mark: Question<'_>, hold: Hold) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// A statement that changes no row, but needs the right to write to this file. It does not wait for a writer: a
    /// claim never waits.
    fn write_nothing(
        &self,
        table: &OutboxTable,
        statements: &SqliteStatements,
        file: &Path,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// How connections open the database; where a pool keeps that to itself, what to do about one in memory.
    fn opened_as(&self) -> Result<OpenedAs, &'static str>;

    /// The address of what clones share, if there is never more than one connection.
    fn only_connection(&self) -> Option<usize>;

    /// Whether a connection that rests is closed after a while.
    fn closes_connections(&self) -> bool;

    /// Whether another connection is writing, and trying again is all there is to do.
    fn is_busy(error: &Self::Error) -> bool;

    /// What an error means, and what to do about it.
    fn meaning(error: &Self::Error) -> Meaning;

    /// The error of an answer that is not what was asked for.
    fn unreadable(why: Unreadable) -> Self::Error;
}

/// Which connections a statement that reads may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Any.
    Anyhow,
    /// One that reads what is committed only: [asked for](super::meaning::ASK_READ_UNCOMMITTED) beforehand.
    Committed,
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum Refused<E: std::error::Error> {
    /// The connection reads what others have not committed.
    #[error("read_uncommitted is on")]
    ReadUncommitted,
    /// The driver failed.
    #[error(transparent)]
    Failed(#[from] E),
}
