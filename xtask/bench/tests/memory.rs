//! The gate of memory: what a claim takes has a bound, whatever the rows have in which column.

use bench::memory::Memory;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// 300 rows of 1 MB headers, packed to nearly nothing, at a bound of 1 MiB: twice what a batch may have, which is the
/// bound and the row that reaches it.
#[test]
fn a_claim_takes_twice_its_bound_and_a_row_at_most() {
    let memory = Memory::measure(|| {
        let most = ALLOCATOR.peak_usage();
        ALLOCATOR.reset_peak_usage();
        (most, ALLOCATOR.current_usage())
    })
    .unwrap();
    let of = [("a claim", memory.of_a_claim(), memory.claim), ("a relay", memory.of_a_relay(), memory.relay)];
    for (what, allowed, bytes) in of {
        // Less than one row is no feat: something was not counted.
        assert!((memory.row..=allowed).contains(&bytes), "{what}: {bytes} of {allowed} bytes: {memory:?}");
    }
}
