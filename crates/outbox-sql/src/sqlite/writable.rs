//! Whether a database takes writes: what cannot be marked must not be published.

use std::sync::atomic::{AtomicBool, Ordering};

use outbox_core::{StoreError, StoreOperation};

/// Asks whether a connection refuses every write: 0 if it does not.
pub const ASK_QUERY_ONLY: &str = "SELECT query_only FROM main.pragma_query_only";

/// What a store knows about it. To be proved once, and again after a settlement that failed.
#[derive(Debug, Default)]
pub struct Writable(AtomicBool);

impl Writable {
    /// Whether it was proved, and nothing spoke against it since.
    pub fn is_known(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Says that it was proved, or that it has to be proved again.
    pub fn set(&self, writable: bool) {
        self.0.store(writable, Ordering::Release);
    }
}

/// The failure of an operation on a connection that refuses every write.
pub fn query_only(operation: StoreOperation) -> StoreError {
    StoreError::permanent(
        operation,
        "the connection is query_only, so that nothing could be marked: give the relay a pool that writes",
    )
}
