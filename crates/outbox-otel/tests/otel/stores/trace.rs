//! From a handler's span through a row of a real table to what the publisher sends.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use opentelemetry::Context;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, Tracer as _,
};
use outbox_core::{
    Accepted, Delivery, Headers, Inspect, MessageId, NewMessage, PendingRequest, PublishError, Publisher,
    Relay, RelayConfig, Store, TenantId, async_trait,
};
use outbox_otel::propagation::{self, WithTraceContext as _};
use outbox_otel::{TraceMode, TraceObserver};
use outbox_sqlx::{AppendError, Columns, InvalidMessage, OutboxTable};

use super::{postgres, sqlite};
use crate::support::{Spans, texts};

type Appended = Result<Vec<MessageId>, AppendError>;

/// Accepts everything and keeps the headers that it would send.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<Headers>>>);

#[async_trait]
impl Publisher for Sent {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.0.lock().expect("nobody panics with it").push(delivery.headers.clone());
        Ok(Accepted)
    }
}

fn message() -> NewMessage {
    NewMessage::new(TenantId::new("acme").expect("a tenant id"), "order.placed", "order-1", "{}")
}

/// A message as a handler writes it, within its span, in a trace that came from a browser with a vendor's
/// state; and that span.
fn handled(spans: &Spans) -> (NewMessage, SpanContext) {
    let state = TraceState::from_key_value([("vendor", "a-b")]).expect("a state");
    let browser = SpanContext::new(TraceId::from(7), SpanId::from(8), TraceFlags::SAMPLED, true, state);
    let request =
        spans.tracer().start_with_context("POST /orders", &Context::new().with_remote_span_context(browser));
    let context = Context::new().with_span(request);
    let _entered = context.clone().attach();
    (message().with_current_trace_context(), context.span().span_context().clone())
}

/// Publishes what is pending; answers the headers that went out.
async fn relayed(store: impl Store, spans: &Spans, mode: TraceMode) -> Vec<Headers> {
    let sent = Sent::default();
    let config = RelayConfig::builder().tenants(["acme"]).build().expect("valid");
    let observer = TraceObserver::new(spans.tracer()).with_mode(mode);
    let relay = Relay::builder(store, sent.clone(), config).observer(observer).build().expect("valid");
    assert!(relay.drain().await.expect("a drain").is_complete());
    sent.0.lock().expect("nobody panics with it").clone()
}

/// In each mode, what a handler wrote into the row joins the publish to its trace, and what goes out carries
/// the context that the mode says; a garbled context begins a trace.
async fn a_row_carries_the_trace(store: impl Inspect + Clone, append: impl AsyncFn(NewMessage) -> Appended) {
    for mode in [TraceMode::Child, TraceMode::Link, TraceMode::PassThrough] {
        let spans = Spans::new();
        let (message, handler) = handled(&spans);
        let row = message.headers.clone();
        append(message).await.expect("it is appended");
        let pending = store
            .pending(&PendingRequest::new(TenantId::new("acme").expect("a tenant id"), NonZeroU32::MIN))
            .await
            .expect("a row");
        assert_eq!(pending[0].headers, row, "the row has them as they were written");
        assert_eq!(row.get("tracestate"), Some("vendor=a-b"));

        let sent = relayed(store.clone(), &spans, mode).await;
        let publish = spans.publish();
        let links: Vec<&SpanContext> = publish.links.iter().map(|link| &link.span_context).collect();
        assert_eq!(links.len(), 1, "{mode:?}");
        assert_eq!((links[0].trace_id(), links[0].span_id()), (handler.trace_id(), handler.span_id()));
        assert_eq!(links[0].trace_state(), handler.trace_state());
        let is_child = mode != TraceMode::Link;
        assert_eq!(publish.parent_span_id == handler.span_id(), is_child, "{mode:?}");
        assert_eq!(publish.span_context.trace_id() == handler.trace_id(), is_child, "{mode:?}");
        let out = propagation::extract(&sent[0]).expect("a context");
        let expected = if mode == TraceMode::PassThrough { &handler } else { &publish.span_context };
        assert_eq!((out.trace_id(), out.span_id()), (expected.trace_id(), expected.span_id()), "{mode:?}");
        assert_eq!(sent[0].get("tracestate"), is_child.then_some("vendor=a-b"), "{mode:?}");
    }
    let spans = Spans::new();
    append(message().with_header("traceparent", "00-\u{1f980}-01")).await.expect("it is appended");
    let sent = relayed(store, &spans, TraceMode::Child).await;
    let publish = spans.publish();
    assert_eq!((publish.parent_span_id, publish.links.len()), (SpanId::INVALID, 0));
    let out = propagation::extract(&sent[0]).expect("a context");
    assert_eq!(out.span_id(), publish.span_context.span_id());
}

/// Without a headers column, an append with trace context says so and writes nothing; without it, the publish
/// begins a trace whose context goes out.
async fn a_table_without_headers_refuses(
    store: impl Store,
    name: &str,
    append: impl AsyncFn(NewMessage) -> Appended,
) {
    let spans = Spans::new();
    let error = append(handled(&spans).0).await.expect_err("there is no column");
    let AppendError::Invalid { reason, .. } = &error else { panic!("{error}") };
    assert!(matches!(reason, InvalidMessage::NoHeadersColumn { .. }), "{reason}");
    let text = format!("the message has headers, and the table {name} has no column for them");
    assert_eq!(reason.to_string(), text);
    append(message()).await.expect("it is appended");
    let sent = relayed(store, &spans, TraceMode::Child).await;
    let publish = spans.publish();
    assert_eq!((sent.len(), publish.parent_span_id), (1, SpanId::INVALID), "only the second was written");
    assert_eq!(texts(&publish)["messaging.message.id"], "1");
    let out = propagation::extract(&sent[0]).expect("a context");
    assert_eq!(out.span_id(), publish.span_context.span_id());
}

#[tokio::test]
async fn a_postgres_row_carries_the_trace() {
    let database = postgres::Database::create("traced", OutboxTable::default()).await;
    a_row_carries_the_trace(database.store_on(None), async |message| database.append(&[message]).await).await;
}

#[tokio::test]
async fn a_sqlite_row_carries_the_trace() {
    let database = sqlite::Database::create(OutboxTable::default()).await;
    a_row_carries_the_trace(database.store(), async |message| database.append(&[message]).await).await;
}

#[tokio::test]
async fn the_camel_case_table_on_postgres_refuses_trace_context() {
    let database = postgres::Database::create("camel", OutboxTable::prisma("OutboxMessage")).await;
    let append = async |message| database.append(&[message]).await;
    a_table_without_headers_refuses(database.store_on(None), "public.outboxMessage", append).await;
}

#[tokio::test]
async fn a_sqlite_table_without_headers_refuses_trace_context() {
    let mut columns = Columns::default();
    columns.headers = None;
    let database = sqlite::Database::create(OutboxTable::default().with_columns(columns)).await;
    let append = async |message| database.append(&[message]).await;
    a_table_without_headers_refuses(database.store(), "main.outbox_message", append).await;
}
