//! The instruments that are written to while the relay works.

use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};

use crate::names::{self, METRICS};

/// The convention's buckets, in seconds; a store's operation has the same.
pub(crate) const OPERATION_BUCKETS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// A delay runs from a wake-up to a day of outage.
const DELAY_BUCKETS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3_600.0, 86_400.0];
/// A batch grows from 32 to 1,000 by default.
const BATCH_BUCKETS: [f64; 11] = [0.0, 1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_000.0, 5_000.0];

pub(super) struct Instruments {
    pub(super) operation_duration: Histogram<f64>,
    pub(super) sent: Counter<u64>,
    pub(super) attempts: Counter<u64>,
    pub(super) active: UpDownCounter<i64>,
    pub(super) delivery_delay: Histogram<f64>,
    pub(super) claim_duration: Histogram<f64>,
    pub(super) claimed: Counter<u64>,
    pub(super) held: Counter<u64>,
    pub(super) lost: Counter<u64>,
    pub(super) batch_size: Histogram<u64>,
    pub(super) verify_duration: Histogram<f64>,
    pub(super) settle_duration: Histogram<f64>,
    pub(super) settled: Counter<u64>,
    pub(super) unsettled: Counter<u64>,
    pub(super) probe_duration: Histogram<f64>,
}

impl Instruments {
    pub(super) fn new(meter: &Meter) -> Self {
        let seconds = |name, buckets: &[f64]| {
            let (unit, meaning) = described(name);
            let histogram = meter.f64_histogram(name).with_unit(unit).with_description(meaning);
            histogram.with_boundaries(buckets.to_vec()).build()
        };
        let counter = |name| {
            let (unit, meaning) = described(name);
            meter.u64_counter(name).with_unit(unit).with_description(meaning).build()
        };
        let (active_unit, active_meaning) = described(names::PUBLISH_ACTIVE);
        let (batch_unit, batch_meaning) = described(names::BATCH_SIZE);
        Self {
            operation_duration: seconds(names::OPERATION_DURATION, &OPERATION_BUCKETS),
            sent: counter(names::SENT_MESSAGES),
            attempts: counter(names::PUBLISH_ATTEMPTS),
            active: meter
                .i64_up_down_counter(names::PUBLISH_ACTIVE)
                .with_unit(active_unit)
                .with_description(active_meaning)
                .build(),
            delivery_delay: seconds(names::DELIVERY_DELAY, &DELAY_BUCKETS),
            claim_duration: seconds(names::CLAIM_DURATION, &OPERATION_BUCKETS),
            claimed: counter(names::CLAIMED_MESSAGES),
            held: counter(names::CLAIMS_HELD),
            lost: counter(names::CLAIMS_LOST),
            batch_size: meter
                .u64_histogram(names::BATCH_SIZE)
                .with_unit(batch_unit)
                .with_description(batch_meaning)
                .with_boundaries(BATCH_BUCKETS.to_vec())
                .build(),
            verify_duration: seconds(names::VERIFY_DURATION, &OPERATION_BUCKETS),
            settle_duration: seconds(names::SETTLE_DURATION, &OPERATION_BUCKETS),
            settled: counter(names::SETTLED_MESSAGES),
            unsettled: counter(names::UNSETTLED_MESSAGES),
            probe_duration: seconds(names::PROBE_DURATION, &OPERATION_BUCKETS),
        }
    }
}

/// A metric's unit and meaning; a name that is not in the table has none, which a test would find.
pub(super) fn described(name: &str) -> (&'static str, &'static str) {
    METRICS.iter().find(|metric| metric.name == name).map_or(("", ""), |metric| (metric.unit, metric.meaning))
}
