//! Where the relay takes the time from.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use crate::Timestamp;

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the relay waits on and measures with: poll, back-off, deadlines. The age of a row is not its matter:
/// that comes from the store's own clock.
///
/// - [`monotonic`](Self::monotonic) never goes back, whatever happens to the machine's date.
/// - [`sleep`](Self::sleep) ends when `monotonic` has gone on by the duration, not before; its future may be
///   dropped at any time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The date and time.
    fn now(&self) -> Timestamp;

    /// Time since a point that the clock chose for itself.
    fn monotonic(&self) -> Duration;

    /// Waits for `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Whether a clock can wait here. [`SystemClock`] needs a tokio runtime with a timer, and tokio has no other way
/// to ask for that than to try.
pub(crate) fn can_wait(clock: &dyn Clock) -> bool {
    catch_unwind(AssertUnwindSafe(|| drop(clock.sleep(Duration::ZERO)))).is_ok()
}

/// The machine's own clock, with tokio's timer; it follows tokio's paused time in tests.
#[derive(Debug, Clone)]
pub struct SystemClock {
    origin: tokio::time::Instant,
}

impl SystemClock {
    /// A clock that begins to count now.
    pub fn new() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
