//! Running an operation on the caller's tokio runtime, for as long as it may take.

use std::panic::catch_unwind;
use std::time::Duration;

use outbox_core::{StoreError, StoreOperation};
use tokio::runtime::Handle;

/// Runs an operation under its request's deadline.
///
/// # Errors
/// What the operation answers; a permanent error outside of a tokio runtime or on one without a timer, where
/// nothing is tried; a transient one past the deadline.
///
/// # Cancellation
/// Past the deadline the operation's future is dropped; what that does is the operation's to say.
pub(crate) async fn within<T>(
    timeout: Duration,
    operation: StoreOperation,
    future: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    if let Err(error) = Handle::try_current() {
        let outside = StoreError::permanent(operation, "the store was called outside of a tokio runtime");
        return Err(outside.with_source(error));
    }
    // tokio has no other way to ask whether a runtime has a timer; the driver needs one as well.
    let Ok(deadline) = catch_unwind(|| tokio::time::sleep(timeout)) else {
        let refused = "the tokio runtime has no timer: build it with enable_time() or enable_all()";
        return Err(StoreError::permanent(operation, refused));
    };
    tokio::select! {
        biased;
        answer = future => answer,
        () = deadline => Err(StoreError::transient(
            operation,
            format!(
                "the database did not answer within {} ms: it is busy or out of reach, or no connection was free",
                timeout.as_millis()
            ),
        )),
    }
}
