//! The writer's side: what goes into a message's headers, and what does not.

use opentelemetry::baggage::BaggageExt as _;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use outbox_core::Headers;
use outbox_otel::propagation::{HeadersMut, HeadersRef, WithTraceContext, extract, inject};

use crate::support::{Spans, order};

/// Ours reads what the SDK's propagator writes, and the other way round.
#[test]
fn the_headers_are_those_of_the_sdks_propagator() {
    let spans = Spans::new();
    spans.tracer().in_span("handler", |context| {
        let span = context.span().span_context().clone();
        let (mut ours, mut theirs) = (Headers::new(), Headers::new());
        assert!(inject(&span, &mut ours));
        let propagator = TraceContextPropagator::new();
        propagator.inject_context(&context, &mut HeadersMut(&mut theirs));
        assert_eq!(ours.get("traceparent"), theirs.get("traceparent"));
        let read = propagator.extract_with_context(&Context::new(), &HeadersRef(&ours));
        assert_eq!(read.span().span_context(), &extract(&theirs).expect("a context"));
    });
}

/// Outside of a span nothing is written, and what is there stays.
#[test]
fn without_a_span_nothing_changes() {
    assert!(order("acme", 1).with_current_trace_context().headers.is_empty());
    let message = order("acme", 1).with_header("traceparent", "by hand");
    assert_eq!(message.clone().with_current_trace_context(), message);
}

/// Baggage is not stored; an application that wants it does so with its own propagator.
#[test]
fn baggage_is_stored_only_on_purpose() {
    let spans = Spans::new();
    let span = spans.tracer().start("handler");
    let context = Context::new().with_span(span).with_baggage([KeyValue::new("user", "u-1")]);
    let mut message = order("acme", 1).with_trace_context(&context);
    let names: Vec<&str> = message.headers.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["traceparent"]);
    BaggagePropagator::new().inject_context(&context, &mut HeadersMut(&mut message.headers));
    assert_eq!(message.headers.get("baggage"), Some("user=u-1"));
}
