//! Trace context in a message's headers: written with the row, read by the relay, sent to the broker.
//!
//! ```
//! use outbox_core::{NewMessage, TenantId};
//! use outbox_otel::propagation::WithTraceContext;
//!
//! # fn main() -> Result<(), outbox_core::InvalidTenantId> {
//! // In the handler, within its span:
//! let message = NewMessage::new(TenantId::new("acme")?, "order.placed", "order-1", "{}")
//!     .with_current_trace_context();
//! # Ok(())
//! # }
//! ```
//!
//! Only `traceparent` and `tracestate` are written. Baggage is not: it often holds what must not be stored.
//! An application that wants it stored, or another format, uses its own propagator on [`HeadersMut`]. The
//! relay sends on whatever headers a row has.
//!
//! A table without a headers column has no room for it: its store refuses a message with headers at the
//! append.

mod w3c;

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::trace::{SpanContext, TraceContextExt};
use outbox_core::{Headers, NewMessage};

pub use w3c::{TRACEPARENT, TRACESTATE};

/// Puts trace context into a message that is about to be appended.
pub trait WithTraceContext: Sized {
    /// Adds the headers of the span that is active now. Without one, nothing changes.
    fn with_current_trace_context(self) -> Self {
        self.with_trace_context(&Context::current())
    }

    /// Adds the headers of the context's span. Without a valid one, nothing changes.
    fn with_trace_context(self, context: &Context) -> Self;
}

impl WithTraceContext for NewMessage {
    fn with_trace_context(mut self, context: &Context) -> Self {
        inject(context.span().span_context(), &mut self.headers);
        self
    }
}

/// Writes a span's context into headers, in place of the one that is there. An invalid one changes nothing.
///
/// Answers whether it was written.
pub fn inject(context: &SpanContext, headers: &mut Headers) -> bool {
    if !context.is_valid() {
        return false;
    }
    headers.insert(TRACEPARENT, w3c::traceparent(context));
    let state = context.trace_state().header();
    if state.is_empty() {
        headers.remove(TRACESTATE);
    } else {
        headers.insert(TRACESTATE, state);
    }
    true
}

/// Reads the span context that headers carry; `None` if there is none, or none that can be read. A garbled
/// `tracestate` is left out and does not harm its `traceparent`.
pub fn extract(headers: &Headers) -> Option<SpanContext> {
    w3c::parse(headers.get(TRACEPARENT)?, headers.get(TRACESTATE))
}

/// Headers as any OpenTelemetry propagator reads them.
#[derive(Debug)]
pub struct HeadersRef<'a>(pub &'a Headers);

impl Extractor for HeadersRef<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name).collect()
    }
}

/// Headers as any OpenTelemetry propagator writes them.
#[derive(Debug)]
pub struct HeadersMut<'a>(pub &'a mut Headers);

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.insert(key, value);
    }
}
