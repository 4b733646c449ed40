//! The lines of the log that a test's thread writes.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    /// Collects from now on, until the guard is dropped.
    pub(crate) fn collect() -> (Self, tracing::subscriber::DefaultGuard) {
        crate::written::share_the_callsites();
        let log = Self::default();
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    /// The lines that an operator sees by default: informational ones and worse.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|(level, _)| *level <= Level::INFO).map(|(_, line)| line.clone()).collect()
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?} ").unwrap();
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("outbox_core")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0.trim_end().to_owned()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
