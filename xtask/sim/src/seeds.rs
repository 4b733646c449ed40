//! Many worlds, on all of the machine's processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::run::{Verdict, run};
use crate::world::Broken;

/// What came of many worlds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// How many worlds there were.
    pub worlds: u64,
    /// How many steps there were in all.
    pub steps: u64,
    /// How many messages were published and marked in all.
    pub marked: u64,
    /// The lowest seed with a promise that was broken.
    pub broken: Option<(u64, Broken)>,
}

/// Runs the worlds of these seeds, and ends with the first that breaks a promise.
///
/// # Panics
/// If a world does.
pub fn many(seeds: std::ops::Range<u64>, steps: usize) -> Found {
    let (next, found) = (AtomicU64::new(seeds.start), Mutex::new(Found::default()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let Verdict { broken, steps, marked, .. } = run(seed, steps, false);
                    let mut found = found.lock().expect("no world panicked");
                    found.worlds += 1;
                    found.steps += steps as u64;
                    found.marked += marked as u64;
                    if let Some(broken) = broken {
                        next.store(seeds.end, Ordering::Relaxed);
                        if found.broken.as_ref().is_none_or(|(first, _)| seed < *first) {
                            found.broken = Some((seed, broken));
                        }
                    }
                }
            });
        }
    });
    found.into_inner().expect("no world panicked")
}
