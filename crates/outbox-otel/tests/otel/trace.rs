//! Spans: what they are called, whose children they are, what they carry, how they end.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::noop::NoopTracer;
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState, Tracer as _,
};
use opentelemetry::{Context, global};
use opentelemetry_sdk::trace::{Sampler, SpanData};
use outbox_core::{
    Accepted, Delivery, Headers, MessageId, NewMessage, PublishError, Publisher, RefusalClass, async_trait,
};
use outbox_otel::propagation::{self, WithTraceContext};
use outbox_otel::{Broker, TraceMode, TraceObserver, names};
use outbox_testkit::{FaultyPublisher, PublishFault, Recorder, When};

use crate::support::{HeaderRecorder, Outbox, Spans, order, tenant, texts};

fn writer() -> SpanContext {
    let state = TraceState::from_key_value([("vendor", "1")]).expect("a state");
    SpanContext::new(TraceId::from(7), SpanId::from(8), TraceFlags::SAMPLED, true, state)
}

fn written() -> NewMessage {
    order("acme", 0).with_trace_context(&Context::new().with_remote_span_context(writer()))
}

/// Relays one message; answers its span and the headers that the publisher got.
async fn relayed(message: NewMessage, mode: TraceMode, spans: &Spans) -> Headers {
    let (outbox, headers) = (Outbox::new(), HeaderRecorder::default());
    outbox.store.append(message);
    let observer = TraceObserver::new(spans.tracer()).with_mode(mode);
    let relay = outbox.relay(headers.clone()).observer(observer).build().expect("valid");
    assert!(relay.drain().await.expect("a drain").is_complete());
    headers.headers().remove(0)
}

fn links(span: &SpanData) -> Vec<SpanContext> {
    span.links.iter().map(|link| link.span_context.clone()).collect()
}

/// The publish is a child of the writer's span and linked to it; the broker gets the publish's context, with
/// the vendor's state.
#[tokio::test]
async fn a_publish_is_a_child_of_its_writer() {
    let spans = Spans::new();
    let headers = relayed(written(), TraceMode::Child, &spans).await;
    let span = spans.publish();
    assert_eq!(
        (span.span_context.trace_id(), span.parent_span_id),
        (writer().trace_id(), writer().span_id())
    );
    assert!(span.parent_span_is_remote);
    assert_eq!(links(&span), [writer()]);
    let sent = propagation::extract(&headers).expect("a context");
    assert_eq!(
        (sent.trace_id(), sent.span_id()),
        (span.span_context.trace_id(), span.span_context.span_id())
    );
    assert_eq!(headers.get("tracestate"), Some("vendor=1"));
}

/// Linked only: a trace of its own, and the broker gets that one.
#[tokio::test]
async fn a_publish_can_be_linked_only() {
    let spans = Spans::new();
    let headers = relayed(written(), TraceMode::Link, &spans).await;
    let span = spans.publish();
    assert_ne!(span.span_context.trace_id(), writer().trace_id());
    assert_eq!(span.parent_span_id, SpanId::INVALID);
    assert_eq!(links(&span), [writer()]);
    let sent = propagation::extract(&headers).expect("a context");
    assert_eq!(sent.span_id(), span.span_context.span_id());
    assert_eq!(headers.get("tracestate"), None, "the other trace's state is not this one's");
}

/// Passed through: the publish is in the writer's trace, and the broker gets the row's headers as they are.
#[tokio::test]
async fn a_context_can_be_passed_through() {
    let spans = Spans::new();
    let message = written();
    let row = message.headers.clone();
    assert_eq!(relayed(message, TraceMode::PassThrough, &spans).await, row);
    assert_eq!(spans.publish().parent_span_id, writer().span_id());
}

/// A message without a context, or with a garbled one, begins a trace; its other headers are left alone.
#[tokio::test]
async fn a_garbled_context_begins_a_trace() {
    let plain = order("acme", 0).with_header("correlation", "c-1");
    let garbled = plain.clone().with_header("traceparent", "00-nonsense").with_header("tracestate", ",,=,");
    for message in [plain, garbled] {
        let spans = Spans::new();
        let headers = relayed(message, TraceMode::Child, &spans).await;
        let span = spans.publish();
        assert_eq!((span.parent_span_id, links(&span).len()), (SpanId::INVALID, 0));
        let sent = propagation::extract(&headers).expect("a new context");
        assert_eq!(sent.trace_id(), span.span_context.trace_id());
        assert_eq!((headers.get("correlation"), headers.get("tracestate")), (Some("c-1"), None));
    }
}

/// A writer that was sampled away stays so; the broker hears it.
#[tokio::test]
async fn a_writer_that_is_not_sampled_stays_so() {
    let spans = Spans::new();
    let unsampled = written().with_header("traceparent", propagation_of(&writer(), "00"));
    let headers = relayed(unsampled, TraceMode::Child, &spans).await;
    assert!(spans.publishes().is_empty());
    let sent = propagation::extract(&headers).expect("a context");
    assert_eq!((sent.trace_id(), sent.is_sampled()), (writer().trace_id(), false));
}

fn propagation_of(context: &SpanContext, flags: &str) -> String {
    format!("00-{}-{}-{flags}", context.trace_id(), context.span_id())
}

/// A tracer that does nothing leaves the row's context in the headers, so that the trace does not break.
#[tokio::test]
async fn without_a_provider_the_writers_context_goes_on() {
    let (outbox, headers) = (Outbox::new(), HeaderRecorder::default());
    outbox.store.append(written());
    let relay = outbox.relay(headers.clone()).observer(TraceObserver::new(NoopTracer::new()));
    relay.build().expect("valid").drain().await.expect("a drain");
    assert_eq!(propagation::extract(&headers.headers()[0]), Some(writer()));
}

/// The span's name, kind and attributes; the subject is not in the name.
#[tokio::test]
async fn a_span_is_named_by_the_operation_and_the_kind() {
    let spans = Spans::new();
    relayed(order("acme", 3), TraceMode::Child, &spans).await;
    let span = spans.publish();
    assert_eq!((span.name.as_ref(), &span.span_kind), ("publish order.placed", &SpanKind::Producer));
    assert_eq!(span.status, Status::Unset);
    let expected = [
        ("messaging.message.body.size", "5"),
        ("messaging.message.id", "1"),
        ("messaging.operation.name", "publish"),
        ("messaging.operation.type", "send"),
        ("messaging.system", "outbox"),
        ("outbox.attempt", "1"),
        ("outbox.message.kind", "order.placed"),
        ("outbox.message.subject", "subject-acme-3"),
        ("outbox.source", "memory"),
        ("outbox.tenant", "acme"),
    ];
    assert_eq!(texts(&span), expected.map(|(key, value)| (key, value.to_owned())).into());
}

/// Where it is known to which destination a kind goes, that names the span, as the conventions say.
#[tokio::test]
async fn a_span_is_named_by_the_destination_where_it_is_known() {
    let broker =
        Broker::new("kafka").with_destination(|kind| (kind == "order.placed").then(|| "orders".into()));
    let (outbox, spans) = (Outbox::new(), Spans::new());
    outbox.store.append(order("acme", 0));
    outbox.store.append(NewMessage::new(tenant("acme"), "order.lost", "s", ""));
    let observer = TraceObserver::new(spans.tracer()).with_broker(broker);
    let relay = outbox.relay(Recorder::new()).observer(observer).build().expect("valid");
    relay.drain().await.expect("a drain");
    let found: Vec<_> = spans
        .publishes()
        .iter()
        .map(|span| {
            let texts = texts(span);
            (span.name.to_string(), texts[names::SYSTEM].clone(), texts.get(names::DESTINATION).cloned())
        })
        .collect();
    let (kafka, orders) = ("kafka".to_owned(), Some("orders".to_owned()));
    let known = ("publish orders".to_owned(), kafka.clone(), orders);
    assert_eq!(found, [known, ("publish order.lost".to_owned(), kafka, None)]);
}

/// A refusal, a panic, a deadline and a stop's deadline are errors of the span, each by its type; the attempt
/// is counted.
#[tokio::test]
async fn what_failed_is_an_error_of_its_span() {
    let (outbox, spans) = (Outbox::new(), Spans::new());
    let publisher = FaultyPublisher::new(Recorder::new(), Arc::new(outbox.clock.clone()));
    publisher.fail(When::Nth(1), PublishFault::Refuse(RefusalClass::Rejected));
    publisher.fail(When::Nth(2), PublishFault::PanicInPoll);
    publisher.fail(When::Nth(3), PublishFault::Hang);
    publisher.fail(When::Nth(4), PublishFault::Hang);
    outbox.append("acme", 1);
    let observer = TraceObserver::new(spans.tracer());
    let relay = outbox.relay(publisher.clone()).observer(observer).build().expect("valid");
    let handle = relay.start().expect("there is a runtime");
    outbox.run_until(|| publisher.calls() == 4).await;
    let stopped = tokio::spawn(handle.stop());
    outbox.run_until(|| stopped.is_finished()).await;
    let ended = spans.publishes();
    let types: Vec<String> = ended.iter().map(|span| texts(span)[names::ERROR_TYPE].clone()).collect();
    assert_eq!(types, ["rejected", "panic", "timeout", "lost"]);
    let attempts: Vec<String> = ended.iter().map(|span| texts(span)[names::ATTEMPT].clone()).collect();
    assert_eq!(attempts, ["1", "2", "3", "4"]);
    assert_eq!(ended[0].status, Status::error("rejected: refused, on purpose"));
    assert!(
        matches!(&ended[1].status, Status::Error { description } if description.contains("panics in its poll"))
    );
    assert!(matches!(&ended[2].status, Status::Error { description } if description.contains("deadline")));
    assert_eq!(ended[3].status, Status::error("lost"));
}

/// Only publishes are spanned, each once, however often its future is polled.
#[tokio::test]
async fn claims_and_probes_are_not_spanned() {
    let (outbox, spans) = (Outbox::new(), Spans::new());
    let publisher = FaultyPublisher::new(Recorder::new(), Arc::new(outbox.clock.clone()));
    publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(5)));
    outbox.append("acme", 3);
    outbox.append("globex", 3);
    let observer = TraceObserver::new(spans.tracer());
    let relay = outbox.relay(publisher).observer(observer).build().expect("valid");
    let _running = relay.start().expect("there is a runtime");
    outbox.run_until(|| outbox.store.unpublished().is_empty()).await;
    outbox.run_for(Duration::from_secs(2)).await;
    assert_eq!((spans.finished().len(), spans.publishes().len()), (6, 6));
}

/// What the publisher spans is below the publish's span.
#[tokio::test]
async fn the_publishers_spans_are_below_the_publish() {
    struct Spanning(opentelemetry_sdk::trace::SdkTracer);

    #[async_trait]
    impl Publisher for Spanning {
        async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
            tokio::task::yield_now().await;
            self.0.in_span("http call", |_| ());
            Ok(Accepted)
        }
    }

    let (outbox, spans) = (Outbox::new(), Spans::new());
    outbox.store.append(written());
    let relay = outbox.relay(Spanning(spans.tracer())).observer(TraceObserver::new(spans.tracer()));
    relay.build().expect("valid").drain().await.expect("a drain");
    let call = spans.finished().into_iter().find(|span| span.name == "http call").expect("it was spanned");
    assert_eq!(call.parent_span_id, spans.publish().span_context.span_id());
    assert_eq!(call.span_context.trace_id(), writer().trace_id());
    assert!(!Context::current().has_active_span(), "nothing stays entered");
}

/// From the handler's span through the row to the subscriber: one trace.
#[tokio::test]
async fn a_trace_runs_from_the_handler_to_the_subscriber() {
    let spans = Spans::new();
    let message = spans.tracer().in_span("POST /orders", |_| order("acme", 1).with_current_trace_context());
    let headers = relayed(message, TraceMode::Child, &spans).await;
    let handler = spans.finished().into_iter().find(|span| span.name == "POST /orders").expect("it ended");
    let publish = spans.publish();
    let sent = propagation::extract(&headers).expect("a context");
    assert_eq!(publish.parent_span_id, handler.span_context.span_id());
    assert_eq!(sent.span_id(), publish.span_context.span_id());
    for trace in [publish.span_context.trace_id(), sent.trace_id()] {
        assert_eq!(trace, handler.span_context.trace_id());
    }
}

/// The global tracer of a process that set no provider spans nothing and harms nothing.
#[tokio::test]
async fn the_global_tracer_without_a_provider_harms_nothing() {
    let outbox = Outbox::new();
    let id: MessageId = outbox.store.append(order("acme", 1));
    let recorder = Recorder::new();
    let relay = outbox.relay(recorder.clone()).observer(TraceObserver::global()).build().expect("valid");
    relay.drain().await.expect("a drain");
    assert_eq!(recorder.accepted(&tenant("acme")), [id]);
    drop(global::tracer("outbox"));
}

/// A sampler that drops everything still hands its context on, as not sampled.
#[tokio::test]
async fn a_publish_that_is_sampled_away_says_so() {
    let spans = Spans::sampled(Sampler::AlwaysOff);
    let headers = relayed(order("acme", 1), TraceMode::Child, &spans).await;
    assert!(!propagation::extract(&headers).expect("a context").is_sampled());
    assert!(spans.finished().is_empty());
}
