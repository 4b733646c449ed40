//! What can be chosen about watermarks.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{Clock, SystemClock};

/// How a store keeps watermarks.
#[derive(Debug, Clone)]
pub struct Watermark {
    pub(super) look_every: Duration,
    pub(super) worth: u64,
    pub(super) ask_every: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

impl Watermark {
    /// The defaults: a look from zero every 5 s; a new safe id after 500 messages, at most every 300 ms.
    pub fn new() -> Self {
        Self {
            look_every: Duration::from_secs(5),
            worth: 500,
            ask_every: Duration::from_millis(300),
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// Sets how often a tenant is looked at from zero, at least. So long, at most, may a message be overlooked
    /// whose id was drawn by hand or which was made pending again, by claims, by probes and so by health as well; and
    /// so long does a safe id serve. With `Duration::MAX` such a message stays hidden from all of them for as long as
    /// the store lives, or until an operation of it fails.
    pub fn with_look_every(mut self, interval: Duration) -> Self {
        self.look_every = interval;
        self
    }

    /// Sets after how many settled messages a watermark is worth its price: then the database is asked for a
    /// new safe id (which costs a claim two statements, at most once per `interval`), and probes begin at it.
    pub fn with_worth(mut self, messages: u64, interval: Duration) -> Self {
        self.worth = messages;
        self.ask_every = interval;
        self
    }

    /// Sets what the intervals are measured with. The machine's clock by default; for tests.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}

impl Default for Watermark {
    fn default() -> Self {
        Self::new()
    }
}
