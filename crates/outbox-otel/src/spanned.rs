//! One span for each publish, however many observers could make one.
//!
//! The relay asks all observers to start, and all of them to propagate, one after the other and without an
//! await between; only then are they entered. So whoever makes a span at the start says so here, and whoever
//! would make another at the propagation looks first.

use std::cell::Cell;

use outbox_core::OutboxMessage;

thread_local! {
    /// The message whose publish, about to begin on this thread, has a span; by its place in memory.
    static SPANNED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Says that a message's publish has a span.
#[cfg(feature = "trace")]
pub(crate) fn claim(message: &OutboxMessage) {
    SPANNED.set(Some(place(message)));
}

/// Forgets it, once all observers have looked.
#[cfg(feature = "trace")]
pub(crate) fn release() {
    SPANNED.set(None);
}

/// Whether a message's publish has a span already.
#[cfg(feature = "tracing")]
pub(crate) fn is_claimed(place: usize) -> bool {
    SPANNED.get() == Some(place)
}

/// Where a message is, to tell it from every other that lives.
pub(crate) fn place(message: &OutboxMessage) -> usize {
    std::ptr::from_ref(message).addr()
}
