//! A subscriber that writes down spans and events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// A span or an event of the target `outbox`.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) is_span: bool,
    pub(crate) level: Level,
    /// The span's name, or the event's message.
    pub(crate) text: String,
    pub(crate) fields: BTreeMap<String, String>,
    /// Of an event: whether it happened within a span.
    pub(crate) in_span: bool,
}

/// A layer that records. A clone records in the same place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording(Arc<Mutex<Vec<(Option<Id>, Recorded)>>>);

impl Recording {
    pub(crate) fn spans(&self) -> Vec<Recorded> {
        self.all().into_iter().filter(|recorded| recorded.is_span).collect()
    }

    /// The events with this message.
    pub(crate) fn events(&self, text: &str) -> Vec<Recorded> {
        self.all().into_iter().filter(|recorded| !recorded.is_span && recorded.text == text).collect()
    }

    pub(crate) fn all(&self) -> Vec<Recorded> {
        self.0.lock().expect("nobody panics with it").iter().map(|(_, recorded)| recorded.clone()).collect()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recording {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let metadata = attributes.metadata();
        if metadata.target() == "outbox" {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            let (text, level) = (metadata.name().to_owned(), *metadata.level());
            let recorded = Recorded { is_span: true, level, text, fields: fields.0, in_span: false };
            self.0.lock().expect("nobody panics with it").push((Some(id.clone()), recorded));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut all = self.0.lock().expect("nobody panics with it");
        if let Some((_, recorded)) = all.iter_mut().rfind(|(span, _)| span.as_ref() == Some(id)) {
            let mut fields = Fields(std::mem::take(&mut recorded.fields));
            values.record(&mut fields);
            recorded.fields = fields.0;
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == "outbox" {
            let mut fields = Fields::default();
            event.record(&mut fields);
            let text = fields.0.remove("message").unwrap_or_default();
            let in_span = context.event_span(event).is_some();
            let recorded =
                Recorded { is_span: false, level: *metadata.level(), text, fields: fields.0, in_span };
            self.0.lock().expect("nobody panics with it").push((None, recorded));
        }
    }
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}
