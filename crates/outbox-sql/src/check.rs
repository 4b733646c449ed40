//! Comparing a live table with what the store needs: from facts, as a driver asks for them, to findings.

use std::fmt;

use outbox_core::text::one_line;

/// A finding is longer than other texts: it may hold a statement to run.
const MAX_FINDING: usize = 4_096;

/// Something about a database that does not suit the store, in words that say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Whether the store works in spite of it.
    pub severity: Severity,
    /// What it is, and what to do.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// It works, but slower or less safely than it could.
    Warning,
    /// It does not work, or breaks a promise.
    Error,
}

impl Finding {
    /// Something that does not work, or breaks a promise.
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into() }
    }

    /// Something that works, but slower or less safely than it could.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{word}: {}", one_line(&self.message, MAX_FINDING))
    }
}
