//! Observers cannot change what the relay does, whatever they do.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use super::*;
use crate::OperationKind;

/// A panic whose payload panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any("the payload's drop panics");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Propagate,
    EnterBefore,
    EnterAfter,
    End,
    Notice,
    /// The observation panics in `enter` and once more when it is dropped for it.
    EnterAndDrop,
    /// The observation never polls.
    NeverPolls,
    /// The observation polls three times.
    PollsTwice,
    Nowhere,
}

/// Panics at one place, and counts the ends that it sees.
#[derive(Clone)]
struct Hostile {
    place: Place,
    ends: Arc<AtomicU32>,
}

impl Hostile {
    fn at(place: Place) -> Self {
        Self { place, ends: Arc::default() }
    }

    fn panic_at(&self, place: Place) {
        if self.place == place {
            std::panic::panic_any(Bomb);
        }
    }
}

impl Observer for Hostile {
    fn start(&self, _: &Operation<'_>) -> Option<Box<dyn Observation>> {
        self.panic_at(Place::Start);
        Some(Box::new(self.clone()))
    }

    fn notice(&self, _: &Notice<'_>) {
        self.panic_at(Place::Notice);
    }
}

impl Observation for Hostile {
    fn propagate(&mut self, headers: &mut Headers) {
        headers.insert("seen-by", format!("{:?}", self.place));
        self.panic_at(Place::Propagate);
    }

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        self.panic_at(Place::EnterBefore);
        self.panic_at(Place::EnterAndDrop);
        if self.place != Place::NeverPolls {
            poll();
        }
        if self.place == Place::PollsTwice {
            poll();
        }
        self.panic_at(Place::EnterAfter);
    }

    fn end(self: Box<Self>, _: &Outcome<'_>) {
        self.ends.fetch_add(1, Ordering::Relaxed);
        self.panic_at(Place::End);
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.panic_at(Place::EnterAndDrop);
        }
    }
}

const PLACES: [Place; 10] = [
    Place::Start,
    Place::Propagate,
    Place::EnterBefore,
    Place::EnterAfter,
    Place::End,
    Place::Notice,
    Place::EnterAndDrop,
    Place::NeverPolls,
    Place::PollsTwice,
    Place::Nowhere,
];

/// An observer between two that behave; the second one's ends are the answer, and how often it was polled.
fn watch(place: Place) -> (Observers, u32, u32) {
    let (mut observers, last) = (Observers::default(), Hostile::at(Place::Nowhere));
    // Kept for good: the observer's own drop is nobody's matter here.
    let hostile = std::mem::ManuallyDrop::new(Hostile::at(place));
    observers.push(Arc::new(Hostile::at(Place::Nowhere)));
    observers.push(Arc::new(HostileObserver(Mutex::new(hostile))));
    observers.push(Arc::new(last.clone()));
    let mut watch = observers.start(&Operation::Probe { source: "source" });
    watch.propagate(&mut Headers::new());
    let mut polls = 0;
    watch.enter(&mut || polls += 1);
    watch.end(&Outcome::Accepted);
    observers.notice(&Notice::Started);
    (observers, polls, last.ends.load(Ordering::Relaxed))
}

/// Hands out one hostile observation after another and never drops its own.
struct HostileObserver(Mutex<std::mem::ManuallyDrop<Hostile>>);

impl Observer for HostileObserver {
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        let hostile = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hostile.start(operation)
    }

    fn notice(&self, notice: &Notice<'_>) {
        let hostile = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hostile.notice(notice);
    }
}

#[test]
fn the_poll_happens_exactly_once_and_the_other_observers_see_one_end_wherever_one_panics() {
    for place in PLACES {
        let (observers, polls, ends) = watch(place);
        assert_eq!((polls, ends), (1, 1), "{place:?}");
        let panics = match place {
            Place::NeverPolls | Place::PollsTwice | Place::Nowhere => 0,
            // Once in `enter`, once in the drop that follows.
            Place::EnterAndDrop => 2,
            _ => 1,
        };
        assert_eq!(observers.panics(), panics, "{place:?}");
    }
}

#[test]
fn a_watch_that_is_dropped_ends_as_abandoned_once() {
    struct Kinds(Arc<Mutex<Vec<(OperationKind, String)>>>);
    struct Kind(OperationKind, Arc<Mutex<Vec<(OperationKind, String)>>>);
    impl Observer for Kinds {
        fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
            Some(Box::new(Kind(operation.kind(), Arc::clone(&self.0))))
        }

        fn notice(&self, _: &Notice<'_>) {}
    }
    impl Observation for Kind {
        fn propagate(&mut self, _: &mut Headers) {}

        fn enter(&mut self, poll: &mut dyn FnMut()) {
            poll();
        }

        fn end(self: Box<Self>, outcome: &Outcome<'_>) {
            self.1.lock().unwrap().push((self.0, format!("{outcome:?}")));
        }
    }
    let (mut observers, ends) = (Observers::default(), Arc::default());
    observers.push(Arc::new(Kinds(Arc::clone(&ends))));
    drop(observers.start(&Operation::Probe { source: "source" }));
    assert_eq!(*ends.lock().unwrap(), [(OperationKind::Probe, "Abandoned".to_owned())]);
}

#[test]
fn headers_that_an_observer_added_before_it_panicked_are_kept() {
    let mut observers = Observers::default();
    observers.push(Arc::new(Hostile::at(Place::Propagate)));
    let mut headers = Headers::new();
    observers.start(&Operation::Probe { source: "source" }).propagate(&mut headers);
    assert_eq!(headers.len(), 1);
}

#[test]
fn a_panics_text_is_its_message_or_says_that_there_is_none() {
    let text = |code: fn()| {
        let panic = catch_unwind(code).unwrap_err();
        let text = panic_text(&*panic);
        discard(panic);
        text
    };
    assert_eq!(text(|| panic!("static")), "static");
    assert_eq!(text(|| panic!("with {}", 1)), "with 1");
    assert_eq!(text(|| std::panic::panic_any(7)), "a panic without a message");
    assert_eq!(text(|| std::panic::panic_any(Bomb)), "a panic without a message");
}
