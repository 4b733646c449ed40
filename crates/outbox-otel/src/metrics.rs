//! OpenTelemetry metrics of what the relay does.

mod gauges;
mod instruments;
mod observation;
mod tenant;

use std::fmt;
use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::global;
use opentelemetry::metrics::Meter;
use outbox_core::text::MAX_NAME;
use outbox_core::{
    Clock, Notice, Observation, Observer, Operation, OutboxMessage, Share, SystemClock, TenantId,
};

use crate::value::value;
use crate::{Broker, names};
use gauges::Gauges;
use instruments::Instruments;
use observation::{Member, PublishMeasure, StoreMeasure};

pub use tenant::{TenantLabel, TenantMap};

/// Counts and measures what a relay does. All metrics are in [`names::METRICS`].
///
/// No metric carries a message's id or subject. Each carries the tenant, unless [`TenantLabel`] says
/// otherwise, and those of a publish the message's kind. One observer belongs to one relay.
///
/// Its gauges are read when the provider collects, without a call to the database: what they say comes from
/// the probe that the relay makes of every tenant at every poll.
pub struct MetricsObserver {
    instruments: Arc<Instruments>,
    gauges: Arc<Gauges>,
    tenants: TenantLabel,
    broker: Broker,
    clock: Arc<dyn Clock>,
}

impl MetricsObserver {
    /// An observer with this meter.
    pub fn new(meter: &Meter) -> Self {
        Self {
            instruments: Arc::new(Instruments::new(meter)),
            gauges: Gauges::register(meter),
            tenants: TenantLabel::default(),
            broker: Broker::untold(),
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// An observer with the global provider's meter.
    ///
    /// Call it *after* the provider was set: before that, it gets a meter that does nothing, for ever.
    pub fn global() -> Self {
        Self::new(&global::meter("outbox"))
    }

    /// Sets what becomes of the tenant on metrics. Default [`TenantLabel::Keep`].
    pub fn with_tenants(mut self, tenants: TenantLabel) -> Self {
        self.tenants = tenants;
        self
    }

    /// Says where the publisher sends to. Default: the system `outbox`, and no destination.
    pub fn with_broker(mut self, broker: Broker) -> Self {
        self.broker = broker;
        self
    }

    /// Sets the clock that durations are measured with; the relay's own, if that was set. Default
    /// [`SystemClock`].
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What every metric about a tenant carries; without one, about all.
    fn attributes(&self, source: &str, tenant: Option<&TenantId>) -> Vec<KeyValue> {
        let mut attributes = Vec::with_capacity(8);
        attributes.push(KeyValue::new(names::SOURCE, label(source)));
        attributes.extend(tenant.and_then(|tenant| self.tenants.attribute(tenant)));
        attributes
    }

    fn publish_attributes(&self, source: &str, message: &OutboxMessage) -> Vec<KeyValue> {
        let mut attributes = self.attributes(source, Some(&message.tenant_id));
        attributes.push(KeyValue::new(names::OPERATION_NAME, names::PUBLISH));
        attributes.push(KeyValue::new(names::OPERATION_TYPE, names::SEND));
        attributes.push(KeyValue::new(names::SYSTEM, self.broker.system()));
        let destination = self.broker.destination(&message.kind);
        attributes.extend(destination.map(|name| KeyValue::new(names::DESTINATION, value(name, MAX_NAME))));
        attributes.push(KeyValue::new(names::MESSAGE_KIND, label(&message.kind)));
        attributes
    }

    fn label(&self, tenant: &TenantId) -> Option<Arc<str>> {
        self.tenants.label(tenant).map(|label| Arc::from(&*label))
    }
}

impl Observer for MetricsObserver {
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        let source = operation.source();
        self.gauges.set_source(source);
        let (instruments, gauges) = (Arc::clone(&self.instruments), Arc::clone(&self.gauges));
        let clock = Arc::clone(&self.clock);
        if let Operation::Publish { message, .. } = operation {
            let attributes = self.publish_attributes(source, message);
            let measure = PublishMeasure::start(instruments, gauges, clock, attributes, message.occurred_at);
            return Some(Box::new(measure));
        }
        let member = |share: &Share<'_>| Member {
            tenant: share.tenant.clone(),
            messages: share.messages,
            attributes: self.attributes(source, Some(share.tenant)),
        };
        Some(Box::new(StoreMeasure {
            kind: operation.kind(),
            started: clock.monotonic(),
            attributes: self.attributes(source, None),
            members: operation.tenants().iter().map(member).collect(),
            tenants: self.tenants.clone(),
            gauges,
            instruments,
            clock,
        }))
    }

    fn notice(&self, notice: &Notice<'_>) {
        match notice {
            Notice::Started => self.gauges.started(&self.clock),
            Notice::Stopped | Notice::Died => self.gauges.ended(),
            Notice::BackedOff { tenant, failures, .. } => {
                self.gauges.backed_off(tenant, self.label(tenant), *failures);
            }
            Notice::Recovered { tenant, .. } => self.gauges.recovered(tenant),
            Notice::SubjectBackedOff { tenant, subject, .. } => {
                self.gauges.subject_backed_off(tenant, subject);
            }
            Notice::SubjectRecovered { tenant, subject, .. } => {
                self.gauges.subject_recovered(tenant, subject);
            }
            _ => {}
        }
    }
}

fn label(text: &str) -> String {
    value(text, MAX_NAME).into_owned()
}

impl fmt::Debug for MetricsObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsObserver")
            .field("tenants", &self.tenants)
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}
