//! A world: its time, its random numbers, its gates, its story, and what is wrong in it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use fastrand::Rng;

use crate::ledger::Ledger;
use crate::replica::Replica;
use crate::setting::Setting;

/// How long something takes when nothing goes wrong.
const LONGEST_WELL: Duration = Duration::from_millis(3);

/// What a gate is in front of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// A sleep's end.
    Sleep,
    /// A request on its way to the database, whatever becomes of who asked.
    Request,
    /// The database's answer.
    Answer,
    /// The publisher's answer.
    Acknowledgement,
}

/// A gate that somebody came to.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) key: u64,
    pub(crate) replica: usize,
    pub(crate) behind: Behind,
    /// Not before this time.
    pub(crate) ready: Duration,
    pub(crate) waker: Option<Waker>,
    pub(crate) is_open: bool,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub promise: &'static str,
    /// By whom, and with what.
    pub how: String,
}

/// What is down as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Down {
    pub(crate) publisher: bool,
    pub(crate) database: bool,
}

/// What the whole world shares. There is one thread.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) rng: Rng,
    pub(crate) now: Duration,
    /// Counts whatever happens, so that any two things have an order.
    pub(crate) count: u64,
    pub(crate) pending: Vec<Pending>,
    pub(crate) ledger: Ledger,
    pub(crate) replicas: Vec<Replica>,
    /// Whether anything may still go wrong.
    pub(crate) is_faulty: bool,
    pub(crate) down: Down,
    /// The world is being taken down: what happens now is not a part of it.
    pub(crate) is_over: bool,
    pub(crate) broken: Option<Broken>,
    story: Option<Vec<String>>,
    next_key: u64,
}

impl World {
    pub(crate) fn new(seed: u64, tells: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let setting = Setting::draw(&mut rng);
        Self {
            ledger: Ledger::new(&setting),
            setting,
            rng,
            now: Duration::ZERO,
            count: 0,
            pending: Vec::new(),
            replicas: Vec::new(),
            is_faulty: true,
            down: Down::default(),
            is_over: false,
            broken: None,
            story: tells.then(Vec::new),
            next_key: 0,
        }
    }

    /// Writes a line of the story, if anybody reads it.
    pub(crate) fn tell(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.story.is_some() && !self.is_over {
            let line = format!("{:>9.3} s  {}", self.now.as_secs_f64(), line(self));
            self.story.iter_mut().for_each(|story| story.push(line.clone()));
        }
    }

    pub(crate) fn take_story(&mut self) -> Vec<String> {
        self.story.take().unwrap_or_default()
    }

    /// Notes a promise that was broken; the first one counts.
    pub(crate) fn broke(&mut self, promise: &'static str, how: impl FnOnce(&Self) -> String) {
        if self.broken.is_none() && !self.is_over {
            let how = how(self);
            self.tell(|_| format!("BROKEN: {promise}: {how}"));
            self.broken = Some(Broken { promise, how });
        }
    }

    /// The next number of what happens.
    pub(crate) fn tick(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Whether something happens that does in so many of a thousand cases.
    pub(crate) fn is_one_of(&mut self, thousandths: u32) -> bool {
        self.rng.u32(..1_000) < thousandths
    }

    /// How long something takes.
    pub(crate) fn latency(&mut self) -> Duration {
        let slow = self.setting.faults.slow;
        if !self.is_faulty {
            return Duration::from_millis(self.rng.u64(..3));
        }
        if !self.is_one_of(slow) {
            return Duration::from_millis(self.rng.u64(..4) / 2);
        }
        Duration::from_millis(match self.rng.u32(..10) {
            0..6 => self.rng.u64(..50),
            6..9 => self.rng.u64(..600),
            _ => self.rng.u64(500..2_500),
        })
    }

    /// Comes to a gate.
    pub(crate) fn arrive(&mut self, replica: usize, behind: Behind, wait: Duration) -> u64 {
        self.next_key += 1;
        // What was to hang for ever hangs no longer than faults do.
        let hangs = !self.is_faulty && behind != Behind::Sleep;
        let ready = self.now.saturating_add(if hangs { wait.min(LONGEST_WELL) } else { wait });
        let (key, waker, is_open) = (self.next_key, None, false);
        self.pending.push(Pending { key, replica, behind, ready, waker, is_open });
        key
    }

    /// When a gate may be opened; `None` if never.
    pub(crate) fn ready(&self, pending: &Pending) -> Option<Duration> {
        if pending.is_open || pending.waker.is_none() || pending.ready == Duration::MAX {
            return None;
        }
        let Some(replica) = self.replicas.get(pending.replica) else { return Some(pending.ready) };
        match pending.behind {
            // The database does what it was asked for, whoever asked and died since.
            Behind::Request => Some(pending.ready),
            _ if replica.is_dead() => None,
            _ => Some(pending.ready.max(replica.frozen_until)),
        }
    }

    /// Whether everything of a relay has happened that could have by now.
    pub(crate) fn is_caught_up(&self, replica: usize) -> bool {
        let lags = |pending: &Pending| {
            pending.replica == replica && self.ready(pending).is_some_and(|ready| ready <= self.now)
        };
        self.replicas[replica].frozen_until <= self.now && !self.pending.iter().any(lags)
    }
}

impl Shared {
    pub(crate) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
