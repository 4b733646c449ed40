//! Texts from outside: none makes a line of its own in a log, and none is kept at any length.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use opentelemetry::trace::Status;
use outbox_core::{Accepted, Delivery, NewMessage, PublishError, Publisher, async_trait};
use outbox_otel::{MetricsObserver, TraceObserver, TracingObserver, names};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Meters, Outbox, Spans, tenant, texts};

const HOSTILE: &str = "acme\nFORGED\r\n\u{1b}[2K\u{85}\u{2028}\u{202e}";

fn endless() -> String {
    HOSTILE.repeat(10_000)
}

fn is_one_line(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}')) && text.len() < 8_192
}

/// Refuses with a remote body.
struct Refusing;

#[async_trait]
impl Publisher for Refusing {
    async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
        tracing::info!(target: "outbox", "within the span");
        Err(PublishError::rejected(endless()).with_source(endless()))
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn message(text: &str) -> NewMessage {
    NewMessage::new(tenant(text), text, text, "{}")
}

/// Every line begins as the subscriber began it, the publish's span with its fields included.
#[tokio::test]
async fn an_outside_text_makes_no_line_of_its_own_in_the_observers_log() {
    // While there is one subscriber only, a thread without one decides for all that nobody wants a line.
    let _another = tracing::Dispatch::new(tracing_subscriber::registry());
    for text in [HOSTILE, &endless()] {
        let written = Written::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .without_time()
            .with_ansi(false)
            .with_writer(written.clone())
            .finish();
        let guard = tracing::subscriber::set_default(subscriber);
        let outbox = Outbox::new();
        outbox.store.append(message(text));
        let relay = outbox.relay(Refusing).observer(TracingObserver::new()).build().expect("valid");
        relay.drain().await.expect("a drain");
        drop(guard);
        let written = String::from_utf8(written.0.lock().expect("nobody panics with it").clone());
        let written = written.expect("UTF-8");
        for what in ["claimed", "within the span", "not published", "settle: nothing to do"] {
            assert!(written.contains(what), "{what}: {written}");
        }
        for line in written.split_terminator('\n') {
            let level = line.split_whitespace().next();
            assert!(
                level.is_some_and(|level| ["WARN", "INFO", "DEBUG", "TRACE"].contains(&level)),
                "{line:?}"
            );
            assert!(is_one_line(line), "{line:?}");
        }
    }
}

/// A span's name and status are texts for people. Its attributes are values: whole, unless they are endless.
#[tokio::test]
async fn a_span_has_one_line_for_people_and_whole_values_for_machines() {
    for text in [HOSTILE, &endless()] {
        let (outbox, spans) = (Outbox::new(), Spans::new());
        outbox.store.append(message(text));
        let relay =
            outbox.relay(Refusing).observer(TraceObserver::new(spans.tracer())).build().expect("valid");
        relay.drain().await.expect("a drain");
        let span = spans.publish();
        assert!(is_one_line(&span.name) && span.name.starts_with(r"publish acme\nFORGED"), "{}", span.name);
        let Status::Error { description } = &span.status else { panic!("{:?}", span.status) };
        assert!(is_one_line(description), "{description}");
        for name in [names::TENANT, names::MESSAGE_KIND, names::MESSAGE_SUBJECT] {
            let value = &texts(&span)[name];
            if text == HOSTILE {
                assert_eq!(value, HOSTILE, "{name}");
            } else {
                assert!(value.chars().count() <= 1_024 && value.ends_with("characters)"), "{name}: {value}");
            }
        }
    }
}

/// Labels of metrics live as long as the process: whole, unless they are endless.
#[tokio::test]
async fn a_metrics_labels_are_whole_unless_they_are_endless() {
    for text in [HOSTILE, &endless()] {
        let (outbox, meters) = (Outbox::new(), Meters::new());
        outbox.store.append(message(text));
        let observer = MetricsObserver::new(&meters.meter());
        let relay = outbox.relay(Refusing).observer(observer).build().expect("valid");
        relay.drain().await.expect("a drain");
        let points = meters.collect();
        let sent = points.iter().find(|point| point.name == names::SENT_MESSAGES).expect("a publish ended");
        for name in [names::TENANT, names::MESSAGE_KIND] {
            let value = &sent.attributes[name];
            if text == HOSTILE {
                assert_eq!(value, HOSTILE, "{name}");
            } else {
                assert!(value.chars().count() <= 256 && value.ends_with("characters)"), "{name}: {value}");
            }
        }
    }
}
