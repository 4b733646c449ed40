//! Why a relay ends, or cannot start.

use tokio::task::JoinError;

use super::observe::panic_text;
use crate::text::words;

/// Why a relay ended without being told to, or could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// There is no tokio runtime here.
    #[error("the outbox relay needs a tokio runtime: start it within one")]
    NoRuntime,
    /// The tokio runtime here has no timer.
    #[error(
        "the outbox relay needs a tokio runtime with a timer: build it with enable_time() or enable_all()"
    )]
    NoTimer,
    /// The relay's task died: a fault in the relay, or a runtime that shut down.
    #[error("the outbox relay's task died: {}", words(reason))]
    Died {
        /// What it died of.
        reason: String,
    },
    /// A drain could not find out what is pending.
    #[error("the outbox relay cannot drain: what is pending cannot be found out")]
    Store(#[source] crate::StoreError),
}

impl RelayError {
    pub(crate) fn died(error: JoinError) -> Self {
        Self::Died { reason: cause_of_death(error) }
    }
}

pub(crate) fn cause_of_death(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic_text(&*panic),
        Err(_) => "the runtime shut down".to_owned(),
    }
}
