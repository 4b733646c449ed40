//! One world from its beginning to its end: who goes on, what happens from outside, and what is asked after each step.

use std::time::Duration;

use outbox_core::Clock;
use outbox_memory::MemoryStore;
use tokio::runtime::Builder;
use tokio::task::yield_now;

use crate::outside::Outside;
use crate::replica::Life;
use crate::world::{Behind, Broken, Shared, World};

/// So many steps are enough for everything to be published once nothing goes wrong any more.
const STEPS_TO_END: usize = 20_000;
/// So is this time. A claim that took its deadline may rest ten times as long.
const TIME_TO_END: Duration = Duration::from_mins(2);

/// What came of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The promise that was broken, and how.
    pub broken: Option<Broken>,
    /// What happened, line by line, if it was to be told.
    pub story: Vec<String>,
    /// How many steps there were, those to its end included.
    pub steps: usize,
    /// How many messages were published and marked.
    pub marked: usize,
}

/// Lets a world happen: so many steps with faults, and then as many without as it takes to publish everything.
///
/// # Panics
/// If there is no runtime, which needs no file and no socket.
pub fn run(seed: u64, steps: usize, tells: bool) -> Verdict {
    // Everybody goes as far as they can before the scheduler is asked again: see `settle`.
    let runtime = Builder::new_current_thread().event_interval(u32::MAX).build().expect("a runtime");
    let world = Shared::new(World::new(seed, tells));
    let mut driver = Driver { outside: Outside::new(world.clone()), world: world.clone(), steps: 0 };
    runtime.block_on(driver.drive(steps));
    let Driver { outside, steps, .. } = driver;
    let marked = outside.memory.published().len();
    let (broken, story) = {
        let mut world = world.lock();
        world.is_over = true;
        (world.broken.take(), world.take_story())
    };
    drop((outside, runtime));
    // These know the world, and the world knew them.
    let (replicas, claims) = {
        let mut world = world.lock();
        (std::mem::take(&mut world.replicas), std::mem::take(&mut world.ledger.claims))
    };
    drop((replicas, claims));
    Verdict { broken, story, steps, marked }
}

/// Waits until nobody can go on without a gate. A runtime of one thread wakes who yields only when its queue is empty,
/// or after so many tasks as its event interval says.
pub(crate) async fn settle() {
    yield_now().await;
    yield_now().await;
}

struct Driver {
    outside: Outside,
    world: Shared,
    steps: usize,
}

impl Driver {
    async fn drive(&mut self, steps: usize) {
        self.world.lock().tell(|world| world.setting.to_string());
        self.outside.begin();
        self.judge().await;
        while self.steps < steps && !self.is_broken() {
            let (faults, is_outside) = {
                let mut world = self.world.lock();
                let faults = world.setting.faults;
                (faults, world.is_one_of(faults.outside))
            };
            if is_outside {
                self.outside.something();
            } else if self.world.lock().is_one_of(faults.lag) {
                self.stand_still();
            } else if !self.go_on() {
                self.outside.something();
            }
            self.judge().await;
        }
        if !self.is_broken() {
            self.end().await;
        }
    }

    async fn judge(&mut self) {
        self.steps += 1;
        settle().await;
        self.world.lock().judge_step();
    }

    fn is_broken(&self) -> bool {
        self.world.lock().broken.is_some()
    }

    /// Opens one of the gates that may be opened first; moves the time on for it. Says whether there is one.
    fn go_on(&self) -> bool {
        let mut world = self.world.lock();
        let ready = |world: &World| -> Option<Duration> {
            world.pending.iter().filter_map(|pending| world.ready(pending)).min()
        };
        let Some(first) = ready(&world) else { return false };
        world.now = world.now.max(first);
        let now = world.now;
        let count =
            world.pending.iter().filter(|pending| world.ready(pending).is_some_and(|at| at <= now)).count();
        // The gates stand in no order of their own: one is drawn by its place among those that are ready, by age.
        let chosen = world.rng.usize(..count);
        let mut keys: Vec<u64> = world
            .pending
            .iter()
            .filter(|pending| world.ready(pending).is_some_and(|at| at <= now))
            .map(|pending| pending.key)
            .collect();
        keys.sort_unstable();
        let key = keys[chosen];
        let pending = world.pending.iter_mut().find(|pending| pending.key == key);
        let waker = pending.and_then(|pending| {
            pending.is_open = true;
            pending.waker.take()
        });
        world.tick();
        drop(world);
        waker.into_iter().for_each(std::task::Waker::wake);
        true
    }

    /// Time passes, and nobody notices.
    fn stand_still(&self) {
        let mut world = self.world.lock();
        let lag = Duration::from_millis(world.rng.u64(1..1_500));
        world.now += lag;
        world.replicas.iter_mut().for_each(|replica| replica.stood_still += lag);
        world.tell(|_| format!("everything stood still for {lag:?}"));
    }

    /// Nothing goes wrong any more: everything is published, and everybody stops.
    async fn end(&mut self) {
        self.outside.heal();
        self.judge().await;
        let (until, mut steps) = (self.world.lock().now + TIME_TO_END, 0);
        while !self.is_broken() && !self.world.lock().ledger.everything_is_marked() {
            steps += 1;
            if steps > STEPS_TO_END || self.world.lock().now > until || !self.go_on() {
                self.world.lock().broke("at least once, when faults stop", |world| {
                    let pending = world.ledger.all_committed().filter(|(_, message)| !message.is_marked);
                    let pending: Vec<i64> = pending.map(|(id, _)| id).collect();
                    format!("{pending:?} are pending after {TIME_TO_END:?}")
                });
            }
            self.judge().await;
        }
        self.outside.stop_all();
        self.judge().await;
        while !self.is_broken()
            && self
                .world
                .lock()
                .replicas
                .iter()
                .any(|of| matches!(of.life, Life::Working | Life::Stopping(_)))
        {
            if !self.go_on() {
                self.world.lock().broke("a stop ends", |_| "nothing is left to happen".to_owned());
            }
            self.judge().await;
        }
        // What a relay waited for no longer runs to its end unheard, and gives back what it brings.
        while !self.is_broken() && self.world.lock().is_anything_on_its_way() && self.go_on() {
            self.judge().await;
        }
        if !self.is_broken() {
            let published = self.outside.memory.published();
            let marked: Vec<i64> = published.iter().map(|published| published.message.id.get()).collect();
            let held = self.outside.memory.held().len();
            self.world.lock().judge_end(&marked, held);
        }
    }
}

/// The table, with the world's time.
pub(crate) fn memory(clock: impl Clock) -> MemoryStore {
    MemoryStore::new().with_clock(std::sync::Arc::new(clock)).with_source("sim")
}

impl World {
    /// Whether the database or a publisher is at something yet.
    fn is_anything_on_its_way(&self) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| pending.behind != Behind::Sleep && self.ready(pending).is_some())
    }

    /// Whatever is on its way arrives now; nobody stands still.
    pub(crate) fn deliver_all(&mut self) {
        let now = self.now;
        for pending in &mut self.pending {
            if pending.behind != Behind::Sleep {
                pending.ready = pending.ready.min(now);
            }
        }
        self.replicas.iter_mut().for_each(|replica| replica.frozen_until = Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use outbox_core::BoxFuture;

    use super::*;

    /// Far more tasks than tokio runs in a row by default, each woken by the one before.
    #[test]
    fn everybody_goes_as_far_as_they_can_before_the_scheduler_is_asked() {
        fn chain(left: usize, ended: Arc<AtomicUsize>) -> BoxFuture<'static, ()> {
            Box::pin(async move {
                ended.fetch_add(1, Ordering::Relaxed);
                if left > 0 {
                    tokio::spawn(chain(left - 1, ended));
                }
            })
        }
        let runtime = Builder::new_current_thread().event_interval(u32::MAX).build().unwrap();
        let ended = Arc::new(AtomicUsize::new(0));
        runtime.block_on(async {
            tokio::spawn(chain(10_000, Arc::clone(&ended)));
            settle().await;
        });
        assert_eq!(ended.load(Ordering::Relaxed), 10_001);
    }
}
