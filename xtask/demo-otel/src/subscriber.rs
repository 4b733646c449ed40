//! The publisher, and the mailer that it delivers to: a subscriber with a span of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use demo::Story;
use opentelemetry::trace::{Span as _, SpanKind, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use outbox_core::{Accepted, Delivery, Headers, PublishError, Publisher, async_trait};
use outbox_otel::propagation;
use tokio::sync::watch;

/// The span of an order that the mailer handles.
pub(super) const PROCESS: &str = "process order.placed";

/// Delivers to the mailer, which refuses one order once. A clone delivers to the same one.
#[derive(Debug, Clone)]
pub(super) struct Mailer {
    story: Story,
    tracer: SdkTracer,
    refuses: &'static str,
    refused: Arc<AtomicBool>,
    handled: Arc<watch::Sender<u64>>,
}

impl Mailer {
    pub(super) fn new(story: &Story, tracer: SdkTracer, refuses: &'static str) -> Self {
        let handled = Arc::new(watch::Sender::new(0));
        Self { story: *story, tracer, refuses, refused: Arc::default(), handled }
    }

    /// Waits until so many orders were handled.
    pub(super) async fn wait_for(&self, orders: u64) {
        // The sender lives as long as this mailer: the wait cannot fail.
        let _ = self.handled.subscribe().wait_for(|handled| *handled >= orders).await;
    }

    /// The mailer's part: all that it knows of the trace came with the headers.
    fn handle(&self, subject: &str, headers: &Headers) {
        let sender =
            propagation::extract(headers).map(|sender| Context::new().with_remote_span_context(sender));
        let span = self.tracer.span_builder(PROCESS).with_kind(SpanKind::Consumer);
        let span = span.with_attributes([KeyValue::new("order", subject.to_owned())]);
        span.start_with_context(&self.tracer, &sender.unwrap_or_default()).end();
    }
}

#[async_trait]
impl Publisher for Mailer {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let subject = &delivery.message.subject_id;
        if subject == self.refuses && !self.refused.swap(true, Ordering::Relaxed) {
            self.story.tell("mailer", &format!("refuses {subject}, attempt {}", delivery.attempt));
            return Err(PublishError::unavailable("the mailer restarts"));
        }
        self.handle(subject, delivery.headers);
        self.story.tell("mailer", &format!("accepts {subject}, attempt {}", delivery.attempt));
        self.handled.send_modify(|handled| *handled += 1);
        Ok(Accepted)
    }
}
