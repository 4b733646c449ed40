//! Prints the counters as JSON. Its allocator counts; `cargo xtask bench` runs it.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use xtask::bench::counters::Counters;

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
