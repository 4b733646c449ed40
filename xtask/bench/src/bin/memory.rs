//! Prints how much memory a claim takes, as JSON. Its allocator knows the most that there was; `cargo xtask bench` runs it.

use bench::memory::Memory;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() -> anyhow::Result<()> {
    let memory = Memory::measure(|| {
        let most = ALLOCATOR.peak_usage();
        ALLOCATOR.reset_peak_usage();
        (most, ALLOCATOR.current_usage())
    })?;
    println!("{}", memory.json());
    Ok(())
}
