//! What an append can fail with.

/// A message was not appended: what [`outbox_sql::AppendError`] says, with sqlx's error.
pub type AppendError = outbox_sql::AppendError<sqlx::Error>;
