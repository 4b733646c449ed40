//! A clock that stands still until a test moves it.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use outbox_core::{BoxFuture, Clock, Timestamp};
use tokio::sync::watch;

/// A clock that a test moves by hand, so that it never really sleeps. A clone is the same clock.
///
/// It begins at 2024-01-01 00:00 UTC. The usual way of a test: [`wait_for_sleepers`](Self::wait_for_sleepers)
/// until everybody who will is asleep, then [`advance`](Self::advance).
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    sleeping: watch::Sender<usize>,
}

struct State {
    now: Timestamp,
    monotonic: Duration,
    next_key: u64,
    /// Who sleeps: until when, and whom to wake.
    sleepers: BTreeMap<(Duration, u64), Waker>,
}

impl ManualClock {
    /// A clock that shows 2024-01-01 00:00 UTC.
    pub fn new() -> Self {
        let state = State {
            now: Timestamp::from_micros(1_704_067_200_000_000),
            monotonic: Duration::ZERO,
            next_key: 0,
            sleepers: BTreeMap::new(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), sleeping: watch::Sender::new(0) }) }
    }

    /// Moves on by `duration` and wakes whoever has slept enough. What they do then happens when the runtime
    /// lets them: wait for its effect, or for their next sleep.
    pub fn advance(&self, duration: Duration) {
        let woken = {
            let mut state = self.shared.lock();
            state.now = state.now.saturating_add(duration);
            state.monotonic = state.monotonic.saturating_add(duration);
            let until = (state.monotonic, u64::MAX);
            let later = state.sleepers.split_off(&until);
            std::mem::replace(&mut state.sleepers, later)
        };
        self.shared.tell();
        for waker in woken.into_values() {
            waker.wake();
        }
    }

    /// Sets the date and time, back or forth, as an operator or a time server does. Nobody wakes: sleeps are
    /// measured by the monotonic time.
    pub fn set_date(&self, now: Timestamp) {
        self.shared.lock().now = now;
    }

    /// How many futures are asleep now.
    pub fn sleepers(&self) -> usize {
        self.shared.lock().sleepers.len()
    }

    /// Waits until at least `count` futures are asleep. It does not move the clock.
    pub async fn wait_for_sleepers(&self, count: usize) {
        // The sender lives as long as this clock: the wait cannot fail.
        let _ = self.shared.sleeping.subscribe().wait_for(|sleeping| *sleeping >= count).await;
    }

    /// Waits until somebody is asleep, moves on to when the first of them wakes, and answers how far that was.
    pub async fn advance_to_next_sleeper(&self) -> Duration {
        loop {
            self.wait_for_sleepers(1).await;
            let first = {
                let state = self.shared.lock();
                state.sleepers.keys().next().map(|(until, _)| until.saturating_sub(state.monotonic))
            };
            if let Some(duration) = first {
                self.advance(duration);
                return duration;
            }
        }
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("ManualClock")
            .field("now", &state.now)
            .field("monotonic", &state.monotonic)
            .field("sleepers", &state.sleepers.len())
            .finish()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.shared.lock().now
    }

    fn monotonic(&self) -> Duration {
        self.shared.lock().monotonic
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.shared.lock();
        state.next_key += 1;
        let key = (state.monotonic.saturating_add(duration), state.next_key);
        Box::pin(Sleep { shared: Arc::clone(&self.shared), key })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells how many are asleep.
    fn tell(&self) {
        self.sleeping.send_modify(|sleeping| *sleeping = self.lock().sleepers.len());
    }
}

/// A sleep; it counts as asleep from its first poll until it is woken or dropped.
struct Sleep {
    shared: Arc<Shared>,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut state = self.shared.lock();
            if state.monotonic >= self.key.0 {
                return Poll::Ready(());
            }
            state.sleepers.insert(self.key, context.waker().clone());
        }
        self.shared.tell();
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let slept = self.shared.lock().sleepers.remove(&self.key);
        if slept.is_some() {
            self.shared.tell();
        }
    }
}
