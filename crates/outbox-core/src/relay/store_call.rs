//! Calls to the store: each in a task of its own, so that the relay never drops a database future.

use std::future::Future;
use std::time::Duration;

use super::observe::panic_text;
use super::shared::Shared;
use crate::{StoreError, StoreOperation};

/// How much longer than the store the relay waits. The store has the same deadline, from the request, and what it
/// says at its end is to be heard: a settlement whose error the relay had made up might still commit.
///
/// It begins when the deadline has passed *and* the relay runs: a process that stood still for longer than the deadline and
/// this gives its store this time all the same.
const GRACE: Duration = Duration::from_millis(250);

/// Runs a store's operation. Past the deadline and the [`GRACE`] it is an error, and the operation runs on unheard
/// until the store itself gives up. What it brings late (a claim) is dropped.
pub(crate) async fn call<T: Send + 'static>(
    shared: &Shared,
    operation: StoreOperation,
    timeout: Duration,
    future: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let task = tokio::spawn(future);
    let deadline = async {
        shared.clock.sleep(timeout).await;
        shared.clock.sleep(GRACE).await;
    };
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
        () = deadline => Err(StoreError::transient(
            operation,
            format!("no answer from the store within {} ms", timeout.as_millis()),
        )),
    }
}
