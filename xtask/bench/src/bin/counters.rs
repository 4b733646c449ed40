//! Prints the counters as JSON. Its allocator counts; `cargo xtask bench` runs it.

use std::alloc::System;

use bench::counters::Counters;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> anyhow::Result<()> {
    let counters = Counters::count(|| {
        let stats = ALLOCATOR.stats();
        (stats.allocations + stats.reallocations) as u64
    })?;
    println!("{}", counters.json());
    Ok(())
}
