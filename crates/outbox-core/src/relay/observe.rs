//! Observers, composed and contained: none of them can change what the relay does.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::text::words;
use crate::{Headers, Notice, Observation, Observer, Operation, Outcome};

/// All observers of a relay.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    list: Vec<Arc<dyn Observer>>,
    panics: Arc<AtomicU64>,
}

impl Observers {
    pub(crate) fn push(&mut self, observer: Arc<dyn Observer>) {
        self.list.push(observer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many panics were contained.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Begins to watch an operation.
    pub(crate) fn start(&self, operation: &Operation<'_>) -> Watch {
        let started =
            self.list.iter().filter_map(|observer| contain(&self.panics, || observer.start(operation)));
        Watch { slots: started.flatten().map(Some).collect(), panics: Arc::clone(&self.panics), ended: false }
    }

    pub(crate) fn notice(&self, notice: &Notice<'_>) {
        for observer in &self.list {
            contain(&self.panics, || observer.notice(notice));
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").field("count", &self.list.len()).field("panics", &self.panics()).finish()
    }
}

/// The observations of one operation. Dropped before its end, it ends as abandoned.
pub(crate) struct Watch {
    /// An observation that panicked leaves its slot empty.
    slots: Vec<Option<Box<dyn Observation>>>,
    panics: Arc<AtomicU64>,
    ended: bool,
}

impl Watch {
    pub(crate) fn propagate(&mut self, headers: &mut Headers) {
        for slot in &mut self.slots {
            if let Some(observation) = slot
                && contain(&self.panics, || observation.propagate(headers)).is_none()
            {
                contain(&self.panics, || *slot = None);
            }
        }
    }

    /// Calls `poll` exactly once, inside every observation.
    pub(crate) fn enter(&mut self, poll: &mut dyn FnMut()) {
        enter(&mut self.slots, &self.panics, poll);
    }

    pub(crate) fn end(mut self, outcome: &Outcome<'_>) {
        self.finish(outcome);
    }

    fn finish(&mut self, outcome: &Outcome<'_>) {
        self.ended = true;
        for observation in self.slots.drain(..).flatten() {
            contain(&self.panics, || observation.end(outcome));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.ended {
            self.finish(&Outcome::Abandoned);
        }
    }
}

fn enter(slots: &mut [Option<Box<dyn Observation>>], panics: &AtomicU64, poll: &mut dyn FnMut()) {
    let Some((slot, rest)) = slots.split_first_mut() else { return poll() };
    let mut polled = false;
    if let Some(observation) = slot {
        let mut once = || {
            if !std::mem::replace(&mut polled, true) {
                enter(rest, panics, poll);
            }
        };
        if contain(panics, || observation.enter(&mut once)).is_none() {
            contain(panics, || *slot = None);
        }
    }
    if !polled {
        enter(rest, panics, poll);
    }
}

/// Runs an observer's code; `None` is a panic, counted and logged.
fn contain<T>(panics: &AtomicU64, code: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => Some(value),
        Err(panic) => {
            let count = panics.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_power_of_two() {
                tracing::error!(count, panic = panic_text(&*panic), "an outbox observer panicked");
            }
            discard(panic);
            None
        }
    }
}

/// Drops a panic's payload. Its destructor is the panicking code's own and may panic as well; the payload of that
/// second panic is leaked, or there would be no end.
pub(crate) fn discard(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
}

/// A panic's message in one line; a payload that is no text is named as such.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words(text.unwrap_or("a panic without a message")).into_owned()
}

#[cfg(test)]
mod tests;
