//! Spans and events of the `tracing` observer.

use std::sync::Arc;

use outbox_core::{Accepted, Delivery, PublishError, Publisher, RefusalClass, async_trait};
use outbox_otel::{TracingObserver, names};
use outbox_testkit::{FaultyPublisher, PublishFault, Recorder, When};
use tracing::Level;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::support::{HeaderRecorder, Outbox, Recording, order};

/// A publish is one span with the fields of the table; its events happen within it.
#[tokio::test]
async fn a_publish_is_a_span_with_an_event() {
    let recording = Recording::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(recording.clone()));
    let outbox = Outbox::new();
    outbox.append("acme", 2);
    let publisher = FaultyPublisher::new(Recorder::new(), Arc::new(outbox.clock.clone()));
    publisher.fail(When::Nth(2), PublishFault::Refuse(RefusalClass::Rejected));
    let relay = outbox.relay(publisher).observer(TracingObserver::new()).build().expect("valid");
    relay.drain().await.expect("a drain");

    let spans = recording.spans();
    assert_eq!(spans.len(), 2);
    let expected = [
        ("messaging.message.body.size", "5"),
        ("messaging.message.id", "1"),
        ("messaging.operation.name", "publish"),
        ("messaging.operation.type", "send"),
        ("messaging.system", "outbox"),
        ("otel.kind", "producer"),
        ("otel.name", "publish order.placed"),
        ("outbox.attempt", "1"),
        ("outbox.message.kind", "order.placed"),
        ("outbox.message.subject", "subject-acme-0"),
        ("outbox.source", "memory"),
        ("outbox.tenant", "acme"),
    ];
    assert_eq!((spans[0].text.as_str(), spans[0].level), ("publish", Level::INFO));
    assert_eq!(spans[0].fields, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!(spans[1].fields[names::ERROR_TYPE], "rejected");
    assert_eq!(spans[1].fields["otel.status_code"], "ERROR");

    let (published, refused) = (recording.events("published"), recording.events("not published"));
    assert_eq!((published.len(), refused.len()), (1, 1));
    assert_eq!((published[0].level, published[0].in_span), (Level::DEBUG, true));
    assert_eq!((refused[0].level, refused[0].in_span), (Level::WARN, true));
    assert_eq!(refused[0].fields["reason"], "rejected: refused, on purpose");
}

/// Claims, settlements and probes are events, not spans: those that moved something DEBUG, the others TRACE.
#[tokio::test]
async fn store_calls_are_events() {
    let recording = Recording::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(recording.clone()));
    let outbox = Outbox::new();
    outbox.append("acme", 2);
    let relay = outbox.relay(Recorder::new()).observer(TracingObserver::new()).build().expect("valid");
    relay.drain().await.expect("a drain");
    for (text, level) in [("claimed", Level::DEBUG), ("settled", Level::DEBUG), ("probed", Level::TRACE)] {
        let events = recording.events(text);
        assert_eq!((events.len(), events[0].level, events[0].in_span), (1, level, false), "{text}");
    }
    assert_eq!(recording.events("claimed")[0].fields["messages"], "2");
}

/// What the publisher logs is within the publish's span, also after an await; the headers are left alone.
#[tokio::test]
async fn the_publisher_runs_within_the_span() {
    struct Logging(HeaderRecorder);

    #[async_trait]
    impl Publisher for Logging {
        async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
            tokio::task::yield_now().await;
            tracing::info!(target: "outbox", "sending");
            self.0.publish(delivery).await
        }
    }

    let recording = Recording::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(recording.clone()));
    let (outbox, headers) = (Outbox::new(), HeaderRecorder::default());
    let message = order("acme", 0).with_header("traceparent", "as it is");
    let row = message.headers.clone();
    outbox.store.append(message);
    let relay =
        outbox.relay(Logging(headers.clone())).observer(TracingObserver::new()).build().expect("valid");
    relay.drain().await.expect("a drain");
    assert!(recording.events("sending")[0].in_span);
    assert_eq!(headers.headers(), [row]);
}

/// Without a subscriber nothing is recorded and nothing harmed.
#[tokio::test]
async fn without_a_subscriber_nothing_happens() {
    let (outbox, recorder) = (Outbox::new(), Recorder::new());
    outbox.append("acme", 3);
    let relay = outbox.relay(recorder.clone()).observer(TracingObserver::new()).build().expect("valid");
    assert!(relay.drain().await.expect("a drain").is_complete());
    recorder.assert_no_duplicates();
}
