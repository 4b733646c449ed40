//! What an append can fail with.

use std::error::Error;

use outbox_core::text::{MAX_REASON, one_line};

use super::InvalidMessage;

/// A message was not appended. `E` is the driver's error.
///
/// After [`Invalid`](Self::Invalid) nothing was sent to the database, and the transaction is as it was. After
/// [`Database`](Self::Database) the transaction is what the database says it is: on PostgreSQL it can only be
/// rolled back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError<E: Error + 'static> {
    /// The table cannot hold one of the messages as it is. None was appended.
    #[error("message {index} cannot be appended: {reason}")]
    Invalid {
        /// Which of the messages given, counted from 0.
        index: usize,
        /// What is wrong with it.
        reason: InvalidMessage,
    },
    /// The database refused the statement, or did not answer.
    #[error("the messages were not appended: {}", one_line(reason, MAX_REASON))]
    #[non_exhaustive]
    Database {
        /// What that means, and what to do.
        reason: String,
        /// What the driver said.
        source: E,
    },
    /// A rule, a trigger or row security let fewer rows in than there were messages. Roll the transaction back.
    #[error(
        "{appended} of {given} messages were appended: a rule, a trigger or row security kept the others out"
    )]
    Skipped {
        /// How many messages there were.
        given: usize,
        /// How many rows there are.
        appended: usize,
    },
}

impl<E: Error + 'static> AppendError<E> {
    /// The driver's error, with what it means and what to do.
    pub fn database(reason: impl Into<String>, source: E) -> Self {
        Self::Database { reason: reason.into(), source }
    }
}
