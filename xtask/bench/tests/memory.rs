//! The gate of memory: what a claim takes has a bound, whatever the rows have in which column.

use bench::memory::Memory;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// 300 rows of 1 MB headers, packed to nearly nothing, at a bound of 1 MiB: some batches, and not the whole backlog. The
/// bench's goal is half of this; how much room the driver's buffer has depends on how the rows arrive, so that a gate on the
/// goal itself would be a matter of luck on a busy machine.
#[test]
fn a_claim_takes_what_some_batches_have_and_not_the_backlog() {
    let memory = Memory::measure(|| {
        let most = ALLOCATOR.peak_usage();
        ALLOCATOR.reset_peak_usage();
        (most, ALLOCATOR.current_usage())
    })
    .unwrap();
    let of = [("a claim", memory.of_a_claim(), memory.claim), ("a relay", memory.of_a_relay(), memory.relay)];
    for (what, allowed, bytes) in of {
        // Less than one row is no feat: something was not counted.
        let most = 2 * allowed;
        assert!((memory.row..=most).contains(&bytes), "{what}: {bytes} of {most} bytes: {memory:?}");
    }
}
