//! One operation, measured from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use outbox_core::{Clock, Headers, Observation, OperationKind, Outcome, Share, TenantId, Timestamp};

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
    occurred_at: Timestamp,
    started: Duration,
    active: bool,
}

impl PublishMeasure {
    pub(super) fn start(
        instruments: Arc<Instruments>,
        gauges: Arc<Gauges>,
        clock: Arc<dyn Clock>,
        attributes: Vec<KeyValue>,
        occurred_at: Timestamp,
    ) -> Self {
        instruments.attempts.add(1, &attributes);
        instruments.active.add(1, &attributes);
        let started = clock.monotonic();
        Self { instruments, gauges, clock, attributes, occurred_at, started, active: true }
    }

    fn ended(&mut self, outcome: &Outcome<'_>) {
        self.deactivate();
        let (instruments, attributes) = (&self.instruments, &mut self.attributes);
        if let Some(failed) = error_type(outcome) {
            attributes.push(KeyValue::new(names::ERROR_TYPE, failed));
        } else {
            let delay = self.gauges.delay(self.occurred_at, self.clock.now());
            instruments.delivery_delay.record(delay.as_secs_f64(), attributes);
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
    /// Whom it is about; nobody, if it is a probe.
    pub(super) members: Vec<Member>,
    pub(super) instruments: Arc<Instruments>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tenants: TenantLabel,
    /// Those of a probe.
    pub(super) attributes: Vec<KeyValue>,
    pub(super) started: Duration,
}

/// A tenant that an operation is about.
pub(super) struct Member {
    pub(super) tenant: TenantId,
    /// How many messages it is about: of a verification and a settlement, those that were accepted.
    pub(super) messages: usize,
    pub(super) attributes: Vec<KeyValue>,
}

impl Observation for StoreMeasure {
    fn propagate(&mut self, _: &mut Headers) {}

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn end(mut self: Box<Self>, outcome: &Outcome<'_>) {
        let took = self.clock.monotonic().saturating_sub(self.started);
        let failed = error_type(outcome).map(|failed| KeyValue::new(names::ERROR_TYPE, failed));
        let duration = match self.kind {
            OperationKind::Probe => &self.instruments.probe_duration,
            OperationKind::Claim => &self.instruments.claim_duration,
            OperationKind::Verify => &self.instruments.verify_duration,
            OperationKind::Settle => &self.instruments.settle_duration,
            _ => return,
        };
        if let Outcome::Probed(oldest) = outcome {
            let label = |tenant: &_| self.tenants.label(tenant).map(|label| Arc::from(&*label));
            self.gauges.probed(oldest, took, &self.clock, label);
        }
        if self.kind == OperationKind::Probe {
            self.attributes.extend(failed);
            duration.record(took.as_secs_f64(), &self.attributes);
            return;
        }
        for mut member in std::mem::take(&mut self.members) {
            member.count(self.kind, &self.instruments, outcome, failed.clone());
            duration.record(took.as_secs_f64(), &member.attributes);
        }
    }
}

impl Member {
    /// Counts what an operation did for it.
    fn count(
        &mut self,
        kind: OperationKind,
        instruments: &Instruments,
        outcome: &Outcome<'_>,
        failed: Option<KeyValue>,
    ) {
        match outcome {
            Outcome::Claimed { tenants, .. } => match self.share(tenants) {
                Some(messages) => {
                    instruments.claimed.add(messages, &self.attributes);
                    instruments.batch_size.record(messages, &self.attributes);
                    // There from the start: an increase is seen only in a series that was there before it.
                    instruments.unsettled.add(0, &self.attributes);
                }
                None => instruments.held.add(1, &self.attributes),
            },
            Outcome::Held => instruments.held.add(1, &self.attributes),
            Outcome::Settled { tenants, .. } => {
                let marked = self.share(tenants).unwrap_or(0);
                instruments.settled.add(marked, &self.attributes);
                // What was accepted behind a failure comes again.
                let unsettled = count(self.messages).saturating_sub(marked);
                if unsettled > 0 {
                    instruments.unsettled.add(unsettled, &self.attributes);
                }
            }
            _ => {}
        }
        if let Some(failed) = failed {
            let holds = matches!(kind, OperationKind::Verify | OperationKind::Settle);
            if holds && self.messages > 0 {
                instruments.unsettled.add(count(self.messages), &self.attributes);
            }
            self.attributes.push(failed);
            if holds {
                instruments.lost.add(1, &self.attributes);
            }
        }
    }

    /// Its part in an outcome.
    fn share(&self, tenants: &[Share<'_>]) -> Option<u64> {
        tenants.iter().find(|share| *share.tenant == self.tenant).map(|share| count(share.messages))
    }
}

fn count(messages: usize) -> u64 {
    messages.try_into().unwrap_or(u64::MAX)
}
