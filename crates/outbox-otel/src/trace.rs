//! OpenTelemetry spans: one for each publish, in the trace of the writer.

use std::fmt;

use opentelemetry::global::{self, BoxedTracer};
use opentelemetry::trace::{Link, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer};
use opentelemetry::{Context, KeyValue};
use outbox_core::text::MAX_REASON;
use outbox_core::{Headers, Notice, Observation, Observer, Operation, OutboxMessage, Outcome};

use crate::error_type::error_type;
use crate::value::value;
use crate::{Broker, names, propagation, spanned};

/// How a publish joins the trace that its message carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceMode {
    /// Its span is a child of the writer's and linked to it; the broker gets the new span's context. The
    /// request's trace runs from the handler to the subscriber.
    #[default]
    Child,
    /// Its span begins a trace of its own, linked to the writer's; the broker gets the new span's context.
    /// For messages that wait for long, or that come from traces which are sampled away.
    Link,
    /// As [`Child`](Self::Child), and the broker gets the writer's context as it is in the row.
    PassThrough,
}

/// Makes a span of each publish. Claims, probes and settlements get none: they happen at every poll, and most of them
/// find nothing.
///
/// A span is named `publish` and the destination (the message's kind, if no [`Broker`] says where that goes),
/// is of kind PRODUCER, and is entered around every poll of
/// the publisher, so that what the publisher spans is below it. A refusal, a panic and a deadline are errors
/// of it. A message whose headers carry no context, or a garbled one, begins a trace.
pub struct TraceObserver<T> {
    tracer: T,
    mode: TraceMode,
    broker: Broker,
}

impl<T> TraceObserver<T>
where
    T: Tracer + Send + Sync + 'static,
    T::Span: Send + Sync + 'static,
{
    /// An observer with this tracer, in the mode [`TraceMode::Child`].
    pub fn new(tracer: T) -> Self {
        Self { tracer, mode: TraceMode::default(), broker: Broker::untold() }
    }

    /// Sets how a publish joins the trace that its message carries.
    pub fn with_mode(mut self, mode: TraceMode) -> Self {
        self.mode = mode;
        self
    }

    /// Says where the publisher sends to. Default: the system `outbox`, and no destination.
    pub fn with_broker(mut self, broker: Broker) -> Self {
        self.broker = broker;
        self
    }
}

impl TraceObserver<BoxedTracer> {
    /// An observer with the global provider's tracer.
    ///
    /// Call it *after* the provider was set: before that, it gets a tracer that does nothing, for ever.
    pub fn global() -> Self {
        Self::new(global::tracer("outbox"))
    }
}

impl<T> fmt::Debug for TraceObserver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceObserver")
            .field("mode", &self.mode)
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}

impl<T> TraceObserver<T>
where
    T: Tracer,
    T::Span: Send + Sync + 'static,
{
    fn span(&self, source: &str, message: &OutboxMessage, attempt: u32) -> Context {
        let writer = propagation::extract(&message.headers);
        let destination = self.broker.destination(&message.kind);
        let name = names::span_name(destination.as_deref().unwrap_or(&message.kind));
        let mut attributes = self.attributes(source, message, attempt);
        attributes.extend(destination.map(|name| KeyValue::new(names::DESTINATION, value(name, MAX_REASON))));
        let mut builder =
            SpanBuilder::from_name(name).with_kind(SpanKind::Producer).with_attributes(attributes);
        let mut parent = Context::new();
        if let Some(writer) = writer {
            builder = builder.with_links(vec![Link::with_context(writer.clone())]);
            if self.mode != TraceMode::Link {
                parent = parent.with_remote_span_context(writer);
            }
        }
        let span = self.tracer.build_with_context(builder, &parent);
        parent.with_span(span)
    }

    fn attributes(&self, source: &str, message: &OutboxMessage, attempt: u32) -> Vec<KeyValue> {
        vec![
            KeyValue::new(names::OPERATION_NAME, names::PUBLISH),
            KeyValue::new(names::OPERATION_TYPE, names::SEND),
            KeyValue::new(names::SYSTEM, self.broker.system()),
            KeyValue::new(names::SOURCE, text(source)),
            KeyValue::new(names::TENANT, text(message.tenant_id.as_str())),
            KeyValue::new(names::MESSAGE_KIND, text(&message.kind)),
            KeyValue::new(names::MESSAGE_ID, message.id.to_string()),
            KeyValue::new(names::MESSAGE_SUBJECT, text(&message.subject_id)),
            KeyValue::new(names::BODY_SIZE, i64::try_from(message.payload_len()).unwrap_or(i64::MAX)),
            KeyValue::new(names::ATTEMPT, i64::from(attempt)),
        ]
    }
}

impl<T> Observer for TraceObserver<T>
where
    T: Tracer + Send + Sync + 'static,
    T::Span: Send + Sync + 'static,
{
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        let Operation::Publish { source, message, attempt, .. } = operation else { return None };
        let context = self.span(source, message, *attempt);
        spanned::claim(message);
        Some(Box::new(PublishSpan { context, pass_through: self.mode == TraceMode::PassThrough }))
    }

    fn notice(&self, _: &Notice<'_>) {}
}

fn text(text: &str) -> String {
    value(text, MAX_REASON).into_owned()
}

/// A publish's span. Dropped without an end, the span ends with it.
struct PublishSpan {
    context: Context,
    pass_through: bool,
}

impl Observation for PublishSpan {
    fn propagate(&mut self, headers: &mut Headers) {
        if !self.pass_through {
            propagation::inject(self.context.span().span_context(), headers);
        }
    }

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        spanned::release();
        let _entered = self.context.clone().attach();
        poll();
    }

    fn end(self: Box<Self>, outcome: &Outcome<'_>) {
        let span = self.context.span();
        if let Some(error) = error_type(outcome) {
            span.set_attribute(KeyValue::new(names::ERROR_TYPE, error));
            span.set_status(Status::error(match outcome {
                Outcome::Refused { error, .. } => error.to_string(),
                _ => error.to_owned(),
            }));
        }
        span.end();
    }
}

impl Drop for PublishSpan {
    fn drop(&mut self) {
        spanned::release();
    }
}
