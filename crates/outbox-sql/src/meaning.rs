//! What a database's error means to the relay.

use std::borrow::Cow;
use std::error::Error;

use outbox_core::text::one_line;
use outbox_core::{StoreError, StoreOperation};

/// So many characters of what a server said leave room for what to do about it.
const MAX_SAID: usize = 400;

/// No connection of the pool came free in time.
pub const POOL_IS_BUSY: &str =
    "no connection of the pool was free in time: give the relay a pool of its own, or a larger one";
/// The pool was closed.
pub const POOL_IS_CLOSED: &str = "the pool is closed";

/// What a server said, in one line, for a text that goes on behind it.
pub fn said(message: &str) -> Cow<'_, str> {
    one_line(message, MAX_SAID)
}

/// What an error means and what to do about it, and whether trying again may help.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// It comes again until somebody does something about it.
    Stays(Cow<'static, str>),
    /// It may be gone at the next try.
    MayGoAway(Cow<'static, str>),
}

impl Meaning {
    /// An error that stays.
    pub fn stays(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Stays(what.into())
    }

    /// An error that may go away.
    pub fn may_go_away(what: impl Into<Cow<'static, str>>) -> Self {
        Self::MayGoAway(what.into())
    }

    /// The error of a store's operation, with what the driver said.
    pub fn store_error(
        self,
        operation: StoreOperation,
        source: impl Error + Send + Sync + 'static,
    ) -> StoreError {
        let error = match self {
            Self::Stays(what) => StoreError::permanent(operation, what),
            Self::MayGoAway(what) => StoreError::transient(operation, what),
        };
        error.with_source(source)
    }

    /// What it means, in words.
    pub fn into_words(self) -> Cow<'static, str> {
        match self {
            Self::Stays(what) | Self::MayGoAway(what) => what,
        }
    }
}
