//! The counter gate: what each message costs stays within fixed bounds. Nothing here is timed.

use std::alloc::System;
use std::ops::RangeInclusive;

use bench::counters::Counters;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// On PostgreSQL, in batches of 1,000: for a batch one durable commit and six round trips (four of the claim, two of
/// the pool, which tests a connection before and after); for a message one dead tuple, and bounds on the log's bytes,
/// of which deleting needs a fraction, and on the allocations, in the relay's own loop and in all.
#[test]
fn postgres_counters_stay_within_their_bounds() {
    let counters = Counters::count(|| {
        let stats = ALLOCATOR.stats();
        (stats.allocations + stats.reallocations) as u64
    })
    .unwrap();
    for (settling, cost, log) in
        [("marking", counters.marking, 200.0..=500.0), ("deleting", counters.deleting, 40.0..=80.0)]
    {
        let what = |name: &str| format!("{name}, {settling}");
        within(&what("round trips of a batch"), cost.round_trips, 4.0..=6.5);
        within(&what("commits of a batch"), cost.commits, 1.0..=1.0);
        within(&what("WAL bytes of a message"), cost.wal_bytes, log);
        within(&what("dead tuples of a message"), cost.dead_tuples, 1.0..=1.0);
        within(&what("allocations of a message"), cost.allocations, 1.0..=5.5);
    }
    within("allocations of a message, relay alone", counters.relay_allocations, 0.0..=0.2);
    within("allocations of a message, relay alone, pipelined", counters.pipelined_allocations, 1.0..=1.5);
}

/// Less than the least is no feat: something was not counted.
fn within(name: &str, value: f64, bounds: RangeInclusive<f64>) {
    assert!(bounds.contains(&value), "{name}: {value}, not in {bounds:?}");
}
