//! Calls to the store: each in a task of its own, so that the relay never drops a database future.

use std::future::Future;

use super::Shared;
use super::observe::panic_text;
use crate::{StoreError, StoreOperation};

/// Runs a store's operation. Past the deadline it is an error, and the operation runs on unheard until the
/// store itself gives up: the request told it the same deadline. What it brings late (a claim) is dropped.
pub(crate) async fn call<T: Send + 'static>(
    shared: &Shared,
    operation: StoreOperation,
    timeout: std::time::Duration,
    future: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let task = tokio::spawn(future);
    tokio::select! {
        biased;
        answer = task => match answer {
            Ok(answer) => answer,
            Err(error) if error.is_panic() => Err(StoreError::permanent(
                operation,
                format!("the store panicked: {}", panic_text(&*error.into_panic())),
            )),
            Err(_) => Err(StoreError::transient(operation, "the runtime is shutting down")),
        },
        () = shared.clock.sleep(timeout) => Err(StoreError::transient(
            operation,
            format!("no answer from the store within {} ms", timeout.as_millis()),
        )),
    }
}
