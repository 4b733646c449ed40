//! What is being done, for whoever waits.

use std::time::Instant;

/// Tells what happens, on the standard error stream.
#[derive(Debug)]
pub(super) struct Progress {
    begin: Instant,
}

impl Progress {
    pub(super) fn begin() -> Self {
        Self { begin: Instant::now() }
    }

    /// What happens now, or just happened.
    pub(super) fn tell(&self, what: &str) {
        eprintln!("bench {:6.1} s  {what}", self.begin.elapsed().as_secs_f64());
    }

    /// How long the bench has run, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}
