//! What a store's operation can fail with.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use crate::text::words;

/// Whether trying again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It may: a lost connection, a deadlock, a timeout.
    Transient,
    /// Not before somebody changes something: a missing table, a missing privilege, a row that cannot be read.
    Permanent,
}

/// The store operations that an error or an observation can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreOperation {
    /// Reading a tenant's messages without a claim.
    Pending,
    /// Looking for each tenant's oldest message.
    Probe,
    /// Taking a tenant and reading its messages.
    Claim,
    /// Asking whether a claim still lives.
    Verify,
    /// Marking messages and giving the tenant back.
    Settle,
    /// Comparing the table with what the store needs.
    Check,
}

impl fmt::Display for StoreOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Probe => "probe",
            Self::Claim => "claim",
            Self::Verify => "verify",
            Self::Settle => "settle",
            Self::Check => "check",
        })
    }
}

/// A store's operation failed. One line in `Display`; the cause is in [`source`](Error::source).
///
/// The relay backs the tenant off and tries again, whatever the kind: a permanent error is one that the
/// operator has to read, and that goes away by itself once its cause does.
#[derive(Debug, thiserror::Error)]
#[error("{operation} failed: {}", words(message))]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: StoreOperation,
    message: Cow<'static, str>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error that may go away by itself. `message` says what failed and what to do.
    pub fn transient(operation: StoreOperation, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: StoreErrorKind::Transient, operation, message: message.into(), source: None }
    }

    /// An error that stays until somebody changes something. `message` says what failed and what to do.
    pub fn permanent(operation: StoreOperation, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: StoreErrorKind::Permanent, operation, message: message.into(), source: None }
    }

    /// Keeps the error that it came from.
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether trying again may help.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Which operation failed.
    pub fn operation(&self) -> StoreOperation {
        self.operation
    }

    /// What failed and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }
}
