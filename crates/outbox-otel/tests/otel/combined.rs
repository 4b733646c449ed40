//! All observers on one relay.

use opentelemetry::trace::TraceContextExt as _;
use outbox_core::{Accepted, Delivery, PublishError, Publisher, RelayBuilder, async_trait};
use outbox_otel::{MetricsObserver, TraceObserver, TracingObserver, names};
use outbox_testkit::Recorder;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::support::{Meters, Outbox, Recording, Spans};

/// Relays four messages of two tenants, with a subscriber that exports to the same provider.
async fn relayed(spans: &Spans, observers: impl Fn(RelayBuilder) -> RelayBuilder) -> Recording {
    let recording = Recording::default();
    let subscriber = tracing_subscriber::registry();
    let subscriber = subscriber.with(recording.clone()).with(OpenTelemetryLayer::new(spans.tracer()));
    let _guard = tracing::subscriber::set_default(subscriber);
    let outbox = Outbox::new();
    outbox.append("acme", 2);
    outbox.append("globex", 2);
    let relay = observers(outbox.relay(Recorder::new())).build().expect("valid");
    assert!(relay.drain().await.expect("a drain").is_complete());
    recording
}

/// However they are ordered, a publish has one span, and each observer's events and metrics are there.
#[tokio::test]
async fn a_publish_has_one_span_whatever_the_order() {
    type Add = fn(RelayBuilder, &Spans, &Meters) -> RelayBuilder;
    let trace: Add = |relay, spans, _| relay.observer(TraceObserver::new(spans.tracer()));
    let tracing: Add = |relay, _, _| relay.observer(TracingObserver::new());
    let metrics: Add = |relay, _, meters| relay.observer(MetricsObserver::new(&meters.meter()));
    for order in [[trace, tracing, metrics], [tracing, metrics, trace], [metrics, trace, tracing]] {
        let (spans, meters) = (Spans::new(), Meters::new());
        let recording =
            relayed(&spans, |relay| order.iter().fold(relay, |relay, add| add(relay, &spans, &meters))).await;
        assert_eq!(spans.publishes().len(), 4, "{:#?}", spans.finished());
        assert_eq!((recording.spans().len(), recording.events("published").len()), (0, 4));
        assert!((meters.total(names::SENT_MESSAGES, &[]) - 4.0).abs() < 0.1);
    }
}

/// Alone, the `tracing` observer's span is exported by the subscriber as what it is: a producer's, which
/// begins a trace.
#[tokio::test]
async fn alone_the_tracing_span_is_exported() {
    let spans = Spans::new();
    relayed(&spans, |relay| relay.observer(TracingObserver::new())).await;
    let publishes = spans.publishes();
    assert_eq!(publishes.len(), 4);
    assert_eq!(publishes[0].name, "publish order.placed");
    assert_eq!(publishes[0].span_kind, opentelemetry::trace::SpanKind::Producer);
    assert_eq!(publishes[0].parent_span_id, opentelemetry::trace::SpanId::INVALID);
}

/// A `tracing` span of the publisher is below the OpenTelemetry span of the publish.
#[tokio::test]
async fn a_publishers_tracing_span_is_below_the_publish() {
    struct Instrumented;

    #[async_trait]
    impl Publisher for Instrumented {
        async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
            tokio::task::yield_now().await;
            tracing::info_span!("send").in_scope(|| ());
            Ok(Accepted)
        }
    }

    let spans = Spans::new();
    let subscriber = tracing_subscriber::registry().with(OpenTelemetryLayer::new(spans.tracer()));
    let _guard = tracing::subscriber::set_default(subscriber);
    let outbox = Outbox::new();
    outbox.append("acme", 1);
    let relay = outbox.relay(Instrumented).observer(TraceObserver::new(spans.tracer()));
    let relay = relay.observer(TracingObserver::new()).build().expect("valid");
    relay.drain().await.expect("a drain");
    let send = spans.finished().into_iter().find(|span| span.name == "send").expect("it was spanned");
    assert_eq!(send.parent_span_id, spans.publish().span_context.span_id());
    assert!(!opentelemetry::Context::current().has_active_span());
}
