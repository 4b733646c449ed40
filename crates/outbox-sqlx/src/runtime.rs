//! The tokio runtime that the caller is on.

use tokio::runtime::Handle;

/// Looked for beforehand: sqlx panics where there is none.
pub(crate) fn runtime() -> sqlx::Result<Handle> {
    Handle::try_current().map_err(|error| sqlx::Error::Configuration(Box::new(error)))
}
