//! Spans and events through the `tracing` crate.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use outbox_core::text::{MAX_NAME, MAX_REASON, one_line};
use outbox_core::{
    Headers, MessageId, Notice, Observation, Observer, Operation, OperationKind, Outcome, TenantId,
};
use tracing::{Span, debug, enabled, field, info_span, trace, warn};

use crate::error_type::error_type;
use crate::value::value;
use crate::{Broker, names, spanned};

/// The target of every span and event.
const TARGET: &str = "outbox";

/// Spans each publish, and tells how each operation ended.
///
/// All of it has the target `outbox`. A publish is a span of the level INFO, entered around every poll of the
/// publisher. Events: a message that was accepted, a batch and a settlement are DEBUG; what was not accepted
/// and what failed is WARN; what happens at every poll (an empty claim, a held tenant, a probe) is TRACE.
/// Starts, stops, back-offs and recoveries are logged by the relay itself and not repeated here.
///
/// On a relay that has a `TraceObserver` too, that one's span is the publish's only span, and this observer
/// adds its events: a subscriber that exports to OpenTelemetry exports nothing twice.
///
/// Alone, it does not join the writer's trace, for `tracing` knows of none: its span begins a trace in a
/// subscriber that exports, and the publisher gets the row's headers, `traceparent` and all, as they are.
/// Whoever wants the publish in the writer's trace adds a `TraceObserver`.
#[derive(Debug, Clone)]
pub struct TracingObserver {
    broker: Broker,
}

impl TracingObserver {
    /// An observer that speaks to the subscriber of the thread that it runs on.
    pub const fn new() -> Self {
        Self { broker: Broker::untold() }
    }

    /// Says where the publisher sends to. Default: the system `outbox`, and no destination.
    pub fn with_broker(mut self, broker: Broker) -> Self {
        self.broker = broker;
        self
    }
}

impl Default for TracingObserver {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for TracingObserver {
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        // Nobody listens: an event has at most this level.
        if !enabled!(target: TARGET, tracing::Level::WARN) {
            return None;
        }
        match operation {
            Operation::Publish { source, message, attempt, .. } => Some(Box::new(Publish {
                place: spanned::place(message),
                source: (*source).to_owned(),
                tenant: message.tenant_id.clone(),
                kind: message.kind.clone(),
                subject: message.subject_id.clone(),
                id: message.id,
                attempt: *attempt,
                bytes: message.payload_len(),
                system: self.broker.system(),
                destination: self.broker.destination(&message.kind),
                span: None,
                started: Instant::now(),
            })),
            _ => Some(Box::new(StoreCall {
                kind: operation.kind(),
                source: operation.source().to_owned(),
                tenants: operation.tenants().iter().map(|share| share.tenant.clone()).collect(),
                started: Instant::now(),
            })),
        }
    }

    fn notice(&self, _: &Notice<'_>) {}
}

/// A publish. Its span is made once every observer has started: one of them may have made it already.
struct Publish {
    place: usize,
    source: String,
    tenant: TenantId,
    kind: String,
    subject: String,
    id: MessageId,
    attempt: u32,
    bytes: usize,
    system: Cow<'static, str>,
    destination: Option<Cow<'static, str>>,
    span: Option<Span>,
    started: Instant,
}

impl Publish {
    fn span(&mut self) -> &Span {
        self.span.get_or_insert_with(|| {
            if spanned::is_claimed(self.place) {
                return Span::none();
            }
            info_span!(
                target: TARGET,
                "publish",
                otel.name = names::span_name(self.destination.as_deref().unwrap_or(&self.kind)),
                otel.kind = "producer",
                otel.status_code = field::Empty,
                otel.status_description = field::Empty,
                { names::OPERATION_NAME } = names::PUBLISH,
                { names::OPERATION_TYPE } = names::SEND,
                { names::SYSTEM } = &*self.system,
                { names::DESTINATION } = self.destination.as_deref().map(text).as_deref(),
                { names::SOURCE } = &*text(&self.source),
                { names::TENANT } = &*text(self.tenant.as_str()),
                { names::MESSAGE_KIND } = &*text(&self.kind),
                { names::MESSAGE_ID } = %self.id,
                { names::MESSAGE_SUBJECT } = &*text(&self.subject),
                { names::BODY_SIZE } = self.bytes,
                { names::ATTEMPT } = self.attempt,
                { names::ERROR_TYPE } = field::Empty,
            )
        })
    }
}

impl Observation for Publish {
    fn propagate(&mut self, _: &mut Headers) {
        self.span();
    }

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        self.span().in_scope(poll);
    }

    fn end(mut self: Box<Self>, outcome: &Outcome<'_>) {
        let took = self.started.elapsed();
        let span = self.span().clone();
        let _entered = span.enter();
        let Self { id, attempt, .. } = &*self;
        let (source, tenant, kind) = (name(&self.source), name(self.tenant.as_str()), name(&self.kind));
        let (source, tenant, kind) = (&*source, &*tenant, &*kind);
        let Some(failed) = error_type(outcome) else {
            debug!(target: TARGET, source, tenant, kind, %id, ?took, "published");
            return;
        };
        let reason = match outcome {
            Outcome::Refused { error, .. } => error.to_string(),
            _ => "dropped before it ended".to_owned(),
        };
        span.record(names::ERROR_TYPE, failed);
        span.record("otel.status_code", "ERROR");
        span.record("otel.status_description", &reason);
        warn!(target: TARGET, source, tenant, kind, %id, attempt, ?took, failed, reason, "not published");
    }
}

/// A probe, a claim, a verification or a settlement.
struct StoreCall {
    kind: OperationKind,
    source: String,
    tenants: Vec<TenantId>,
    started: Instant,
}

impl Observation for StoreCall {
    fn propagate(&mut self, _: &mut Headers) {}

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn end(self: Box<Self>, outcome: &Outcome<'_>) {
        let took = self.started.elapsed();
        let kind = self.kind;
        let source = &*name(&self.source);
        if let Outcome::Probed(oldest) = outcome {
            trace!(target: TARGET, source, tenants = oldest.len(), ?took, "probed");
            return;
        }
        if self.tenants.is_empty() {
            // A probe that came to nothing.
            tell(kind, source, None, took, outcome);
        }
        for tenant in &self.tenants {
            tell(kind, source, Some(tenant), took, outcome);
        }
    }
}

/// How an operation ended for a tenant.
fn tell(kind: OperationKind, source: &str, tenant: Option<&TenantId>, took: Duration, outcome: &Outcome<'_>) {
    let of = tenant;
    let tenant = tenant.map(|tenant| name(tenant.as_str()));
    let tenant = tenant.as_deref();
    match outcome {
        Outcome::Claimed { tenants, .. } | Outcome::Settled { tenants, .. } => {
            match tenants.iter().find(|share| Some(share.tenant) == of).map(|share| share.messages) {
                None => trace!(target: TARGET, source, tenant, ?took, "held elsewhere"),
                Some(0) => trace!(target: TARGET, source, tenant, ?took, "{kind}: nothing to do"),
                Some(messages) if kind == OperationKind::Claim => {
                    debug!(target: TARGET, source, tenant, messages, ?took, "claimed");
                }
                Some(messages) => debug!(target: TARGET, source, tenant, messages, ?took, "settled"),
            }
        }
        Outcome::Verified => trace!(target: TARGET, source, tenant, ?took, "the claim lives"),
        Outcome::Held => trace!(target: TARGET, source, tenant, ?took, "held elsewhere"),
        Outcome::Failed(error) => {
            let (failed, error) = (error_type(outcome), error.to_string());
            warn!(target: TARGET, source, tenant, ?took, failed, error, "{kind} failed");
        }
        _ => debug!(target: TARGET, source, tenant, ?took, "{kind} was abandoned"),
    }
}

/// A name, for an event.
fn name(text: &str) -> Cow<'_, str> {
    one_line(text, MAX_NAME)
}

/// A field of a span, whose values are joined with others.
fn text(text: &str) -> Cow<'_, str> {
    value(text, MAX_REASON)
}
