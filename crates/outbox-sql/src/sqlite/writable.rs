//! Whether a database takes writes: what cannot be marked must not be published.

use std::sync::atomic::{AtomicBool, Ordering};

use outbox_core::{StoreError, StoreOperation};

use super::Place;
use super::driver::SqliteDriver;
use super::store::{Shared, Through, refusal};
use crate::driver::{Asking as _, Question};

/// Asks whether a connection refuses every write: 0 if it does not.
const ASK_QUERY_ONLY: &str = "SELECT query_only FROM main.pragma_query_only";

/// What a store knows about it. To be proved once, and again after a settlement that failed.
#[derive(Debug, Default)]
pub(super) struct Writable(AtomicBool);

impl Writable {
    /// Whether it was proved, and nothing spoke against it since.
    pub(super) fn is_known(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Says that it was proved, or that it has to be proved again.
    pub(super) fn set(&self, writable: bool) {
        self.0.store(writable, Ordering::Release);
    }
}

/// The failure of an operation on a connection that refuses every write.
fn query_only(operation: StoreOperation) -> StoreError {
    StoreError::permanent(
        operation,
        "the connection is query_only, so that nothing could be marked: give the relay a pool that writes",
    )
}

impl<D: SqliteDriver> Shared<D> {
    /// Proves it once for the store, and again after a settlement that failed.
    pub(super) async fn prove_writable(&self, place: &Place) -> Result<(), StoreError> {
        const CLAIM: StoreOperation = StoreOperation::Claim;
        if self.writable.is_known() {
            return Ok(());
        }
        let answer = Through(self).ask_one(Question::unnamed(ASK_QUERY_ONLY, &[])).await;
        let answer =
            answer.and_then(|mut answer| answer.take::<i64>(0).map_err(|why| D::unreadable(why).into()));
        if answer.map_err(|refused| refusal::<D>(CLAIM, refused))? != 0 {
            return Err(query_only(CLAIM));
        }
        if let Place::File(file) = place {
            match self.driver.write_nothing(&self.table, &self.statements, file.path()).await {
                Err(error) if !D::is_busy(&error) => return Err(D::meaning(&error).store_error(CLAIM, error)),
                // Another is writing at this moment, so it can be written to.
                _ => {}
            }
        }
        self.writable.set(true);
        Ok(())
    }
}
