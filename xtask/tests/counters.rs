//! The counter gate: what each message costs stays within fixed bounds. Nothing here is timed.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use xtask::bench::counters::Counters;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// On PostgreSQL, in batches of 1,000: for a batch one durable commit and six round trips (four of the claim, two of
/// the pool, which tests a connection before and after); for a message one dead tuple, and bounds on the log's bytes
/// and on the allocations, in the relay's own loop and in all.
#[test]
fn postgres_counters_stay_within_their_bounds() {
    let counters = Counters::count(|| {
        let stats = ALLOCATOR.stats();
        (stats.allocations + stats.reallocations) as u64
    })
    .unwrap();
    let bounds = [
        ("round trips of a batch", counters.round_trips, 4.0, 6.5),
        ("commits of a batch", counters.commits, 1.0, 1.0),
        ("WAL bytes of a message", counters.wal_bytes, 200.0, 500.0),
        ("dead tuples of a message", counters.dead_tuples, 1.0, 1.0),
        ("allocations of a message", counters.allocations, 1.0, 5.5),
        ("allocations of a message, relay alone", counters.relay_allocations, 0.0, 0.2),
    ];
    for (name, value, least, most) in bounds {
        // Less than the least is no feat: something was not counted.
        assert!((least..=most).contains(&value), "{name}: {value}, not from {least} to {most}");
    }
}
