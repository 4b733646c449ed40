//! A running relay, owned.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::error::{RelayError, cause_of_death};
use super::run::run;
use super::shared::Shared;
use super::stop::{Stop, StopOnDrop};
use crate::clock::can_wait;
use crate::status::Board;

/// A running relay.
///
/// Dropping it requests a stop and does not wait: the relay claims nothing more, and what is in flight ends by
/// itself within the stop's deadline.
#[derive(Debug)]
#[must_use = "a relay stops when its handle is dropped"]
pub struct RelayHandle {
    stop: StopOnDrop,
    task: JoinHandle<()>,
    /// How the task ended, once that is known.
    ended: Option<Result<(), String>>,
}

impl RelayHandle {
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self, RelayError> {
        let runtime = runtime(&shared)?;
        let stop = Stop::default();
        let on_board = Board::begin(&shared.board);
        let task = runtime.spawn(run(shared, stop.clone(), on_board));
        Ok(Self { stop: StopOnDrop(stop), task, ended: None })
    }

    /// Stops the relay and waits until it holds nothing.
    ///
    /// No new claim is made. A message being published is finished, and its tenant's accepted prefix settled;
    /// past [`stop_timeout`](crate::RelayConfig::stop_timeout) the publish is dropped and its row stays
    /// pending. It ends within the stop's deadline and two of the store's, each with the quarter of a
    /// second that the relay waits longer.
    ///
    /// # Errors
    /// [`RelayError::Died`], if the relay's task had ended by itself.
    ///
    /// # Cancellation
    /// The stop goes on by itself.
    pub async fn stop(mut self) -> Result<(), RelayError> {
        self.stop.0.request();
        self.ended().await
    }

    /// Waits until the relay ends by itself, which it does only when its task dies.
    ///
    /// # Errors
    /// [`RelayError::Died`].
    ///
    /// # Cancellation
    /// Safe: it can be called again, also after it has answered.
    pub async fn ended(&mut self) -> Result<(), RelayError> {
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => (&mut self.task).await.map_err(cause_of_death),
        };
        self.ended.insert(ended).clone().map_err(|reason| RelayError::Died { reason })
    }

    /// Whether the relay has ended.
    pub fn is_ended(&self) -> bool {
        self.task.is_finished()
    }
}

/// The runtime that the caller is on, if a relay can run there.
pub(super) fn runtime(shared: &Shared) -> Result<Handle, RelayError> {
    let runtime = Handle::try_current().map_err(|_| RelayError::NoRuntime)?;
    if can_wait(&*shared.clock) { Ok(runtime) } else { Err(RelayError::NoTimer) }
}
