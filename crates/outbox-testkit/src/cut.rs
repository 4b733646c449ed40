//! Futures that are dropped before they end.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use fastrand::Rng;

/// Drops futures at random awaits: the same ones in every run.
pub(crate) struct Cut {
    random: Rng,
    /// The most polls that a future took so far: where the last await is.
    longest: usize,
}

impl Cut {
    pub(crate) fn new() -> Self {
        Self { random: Rng::with_seed(0x0b0c), longest: 4 }
    }

    /// Polls a future for some times and drops it: while what it waits for is still under way, or when that
    /// has come. `None` if it did not end before.
    pub(crate) async fn cut<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let polls = self.random.usize(0..=self.longest + 1);
        let under_way = self.random.bool();
        let mut future = pin!(future);
        let mut polled = 0;
        let ended = poll_fn(|context| {
            if polled == polls {
                return Poll::Ready(None);
            }
            polled += 1;
            match future.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if polled == polls && under_way => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
        self.longest = self.longest.max(polled);
        ended
    }
}
