//! The encoding of a database: asked for once, before the first probe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outbox_core::{StoreError, StoreOperation};

/// Asks for it. No parameter.
pub(crate) const ENCODING: &str = "SELECT pg_catalog.current_setting('server_encoding')";

/// What PostgreSQL calls a database that takes any bytes for text.
pub(crate) const ANY_BYTES: &str = "SQL_ASCII";

/// Why no relay works on such a database.
pub(crate) const NO_ENCODING: &str = "the database's encoding is SQL_ASCII, which takes bytes for text that are none: \
    one such tenant stops the search for all. Make a database with the encoding UTF8, and move the data there";

/// Whether a database's encoding is known to be one. A clone knows what the other learns.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownEncoding(Arc<AtomicBool>);

impl KnownEncoding {
    /// Whether it need not be asked for any more.
    pub(crate) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// It may be another's by now.
    pub(crate) fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Takes in the answer.
    ///
    /// # Errors
    /// A permanent [`StoreError`] for a database that takes any bytes for text.
    pub(crate) fn learn(&self, encoding: &str, operation: StoreOperation) -> Result<(), StoreError> {
        if encoding == ANY_BYTES {
            return Err(StoreError::permanent(operation, NO_ENCODING));
        }
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}
