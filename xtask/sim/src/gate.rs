//! Where everybody waits until the scheduler lets them go on; time is one of the gates.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use outbox_core::{BoxFuture, Clock, Timestamp};

use crate::world::{Behind, Shared};

/// 2024-01-01 00:00 UTC, where every world begins.
const BEGINNING: i64 = 1_704_067_200_000_000;

/// Ends when the scheduler opens it.
pub(crate) struct Gate {
    world: Shared,
    key: u64,
}

impl Gate {
    pub(crate) fn new(world: &Shared, replica: usize, behind: Behind, wait: Duration) -> Self {
        let key = world.lock().arrive(replica, behind, wait);
        Self { world: world.clone(), key }
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut world = self.world.lock();
        let Some(place) = world.pending.iter().position(|pending| pending.key == self.key) else {
            return Poll::Ready(());
        };
        if world.pending[place].is_open {
            world.pending.swap_remove(place);
            return Poll::Ready(());
        }
        let waker = world.pending[place].waker.replace(context.waker().clone());
        drop(world);
        drop(waker);
        Poll::Pending
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let mut world = self.world.lock();
        let place = world.pending.iter().position(|pending| pending.key == self.key);
        let left = place.map(|place| world.pending.swap_remove(place));
        drop(world);
        drop(left);
    }
}

/// The world's time, as one relay waits on it.
#[derive(Debug, Clone)]
pub(crate) struct WorldClock {
    pub(crate) world: Shared,
    pub(crate) replica: usize,
}

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(BEGINNING).saturating_add(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        self.world.lock().now
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Gate::new(&self.world, self.replica, Behind::Sleep, duration))
    }
}
