//! One operation, measured from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use outbox_core::{Clock, Headers, Observation, OperationKind, Outcome, Timestamp};

use super::gauges::Gauges;
use super::instruments::Instruments;
use super::tenant::TenantLabel;
use crate::error_type::error_type;
use crate::names;

/// A publish. Dropped without an end, it is not under way any more all the same.
pub(super) struct PublishMeasure {
    instruments: Arc<Instruments>,
    gauges: Arc<Gauges>,
    clock: Arc<dyn Clock>,
    attributes: Vec<KeyValue>,
    occurred_at: Option<Timestamp>,
    started: Duration,
    active: bool,
}

impl PublishMeasure {
    pub(super) fn start(
        instruments: Arc<Instruments>,
        gauges: Arc<Gauges>,
        clock: Arc<dyn Clock>,
        attributes: Vec<KeyValue>,
        occurred_at: Option<Timestamp>,
    ) -> Self {
        instruments.attempts.add(1, &attributes);
        instruments.active.add(1, &attributes);
        let started = clock.monotonic();
        Self { instruments, gauges, clock, attributes, occurred_at, started, active: true }
    }

    fn ended(&mut self, outcome: &Outcome<'_>) {
        self.deactivate();
        let (instruments, attributes) = (&self.instruments, &mut self.attributes);
        match error_type(outcome) {
            Some(failed) => attributes.push(KeyValue::new(names::ERROR_TYPE, failed)),
            None => {
                if let Some(occurred_at) = self.occurred_at {
                    let delay = self.gauges.delay(occurred_at, self.clock.now());
                    instruments.delivery_delay.record(delay.as_secs_f64(), attributes);
                }
            }
        }
        let took = self.clock.monotonic().saturating_sub(self.started);
        instruments.operation_duration.record(took.as_secs_f64(), attributes);
        instruments.sent.add(1, attributes);
    }

    fn deactivate(&mut self) {
        if std::mem::take(&mut self.active) {
            self.instruments.active.add(-1, &self.attributes);
        }
    }
}

impl Observation for PublishMeasure {
    fn propagate(&mut self, _: &mut Headers) {}

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn end(mut self: Box<Self>, outcome: &Outcome<'_>) {
        self.ended(outcome);
    }
}

impl Drop for PublishMeasure {
    fn drop(&mut self) {
        self.deactivate();
    }
}

/// A probe, a claim, a verification or a settlement.
pub(super) struct StoreMeasure {
    pub(super) kind: OperationKind,
    /// How many it is about: of a verification and a settlement, those that were accepted.
    pub(super) messages: usize,
    pub(super) instruments: Arc<Instruments>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tenants: TenantLabel,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) started: Duration,
}

impl Observation for StoreMeasure {
    fn propagate(&mut self, _: &mut Headers) {}

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn end(mut self: Box<Self>, outcome: &Outcome<'_>) {
        let took = self.clock.monotonic().saturating_sub(self.started);
        let instruments = &self.instruments;
        match outcome {
            Outcome::Probed(oldest) => {
                let label = |tenant: &_| self.tenants.label(tenant).map(|label| Arc::from(&*label));
                self.gauges.probed(oldest, took, &self.clock, label);
            }
            Outcome::Claimed { messages, .. } => {
                let messages = count(*messages);
                instruments.claimed.add(messages, &self.attributes);
                instruments.batch_size.record(messages, &self.attributes);
                // There from the start: an increase is seen only in a series that was there before it.
                instruments.unsettled.add(0, &self.attributes);
            }
            Outcome::Held => instruments.held.add(1, &self.attributes),
            Outcome::Settled { messages, .. } => instruments.settled.add(count(*messages), &self.attributes),
            _ => {}
        }
        if let Some(failed) = error_type(outcome) {
            let holds = matches!(self.kind, OperationKind::Verify | OperationKind::Settle);
            if holds && self.messages > 0 {
                instruments.unsettled.add(count(self.messages), &self.attributes);
            }
            self.attributes.push(KeyValue::new(names::ERROR_TYPE, failed));
            if holds {
                instruments.lost.add(1, &self.attributes);
            }
        }
        let duration = match self.kind {
            OperationKind::Probe => &instruments.probe_duration,
            OperationKind::Claim => &instruments.claim_duration,
            OperationKind::Verify => &instruments.verify_duration,
            OperationKind::Settle => &instruments.settle_duration,
            _ => return,
        };
        duration.record(took.as_secs_f64(), &self.attributes);
    }
}

fn count(messages: usize) -> u64 {
    messages.try_into().unwrap_or(u64::MAX)
}
