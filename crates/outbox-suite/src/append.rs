//! What an append of any ORM fails with.

use std::error::Error;

use outbox_sql::InvalidMessage;

/// A message was not appended: what [`outbox_sql::AppendError`] says, whatever the driver's error.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The table cannot hold one of the messages.
    #[error("{said}")]
    #[non_exhaustive]
    Invalid {
        /// Which of them, counted from 0.
        index: usize,
        /// What is wrong with it.
        reason: InvalidMessage,
        /// The error's own line.
        said: String,
    },
    /// Anything else: the error's own line.
    #[error("{0}")]
    Other(String),
}

impl<E: Error + 'static> From<outbox_sql::AppendError<E>> for AppendError {
    fn from(error: outbox_sql::AppendError<E>) -> Self {
        let said = error.to_string();
        match error {
            outbox_sql::AppendError::Invalid { index, reason } => Self::Invalid { index, reason, said },
            _ => Self::Other(said),
        }
    }
}
