//! What is known of a relay from outside: its life, its probes, its turns, and who waits for what.

use std::collections::BTreeMap;
use std::time::Duration;

use outbox_core::{Relay, RelayHandle};

use crate::setting::Setting;

/// How far a relay's life is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Working,
    /// It was told to stop at this time.
    Stopping(Duration),
    Stopped,
    /// Its process was killed: nothing of it goes on.
    Dead,
}

/// Where a tenant is, as one relay must see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It waits for a probe.
    Idle,
    /// It waits for a turn since then.
    Due(Duration),
    /// It waits for a time, which is between these two.
    Waiting {
        earliest: Duration,
        latest: Duration,
    },
    Turn,
    /// Its turn may come, and need not.
    Unknown,
    /// A drain has done with it.
    Done,
}

/// A subject that waits alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldBack {
    pub(crate) failures: u32,
    pub(crate) message: i64,
    /// Until when, once that was told.
    pub(crate) until: Duration,
}

/// A turn under way.
#[derive(Debug, Clone)]
pub(crate) struct TurnOf {
    pub(crate) began: Duration,
    pub(crate) limit: usize,
    pub(crate) claim: Option<usize>,
    pub(crate) claim_took: Duration,
    /// A wake came while it was under way.
    pub(crate) woken: bool,
    /// The tenant had failed before it.
    pub(crate) after_failure: bool,
    pub(crate) verify_asked: Duration,
    /// A verification took so long that it proves nothing.
    pub(crate) proof_late: bool,
    /// The subjects that had failed before it.
    pub(crate) failed: Vec<usize>,
    /// The places of refused messages, in the order in which that was heard.
    pub(crate) refused: Vec<usize>,
    /// How many messages the relay told its observers to be accepted.
    pub(crate) accepted: usize,
}

/// A tenant, as one relay must see it.
#[derive(Debug, Clone)]
pub(crate) struct TenantOf {
    pub(crate) place: Place,
    pub(crate) failures: u32,
    /// It told that it backs off, and nothing else since.
    pub(crate) backs_off: bool,
    pub(crate) refused: Option<i64>,
    /// A turn ended after the last probe had begun.
    pub(crate) is_newer: bool,
    pub(crate) full_since: Option<Duration>,
    /// Whether the relay may have forgotten since when that is.
    pub(crate) is_unsure: bool,
    pub(crate) last_end: Option<Duration>,
    pub(crate) held: BTreeMap<usize, HeldBack>,
    pub(crate) turn: Option<TurnOf>,
    /// How its last turn ended, in a drain's words.
    pub(crate) outcome: &'static str,
}

/// A relay's probes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProbesOf {
    pub(crate) is_under_way: bool,
    pub(crate) count: usize,
    pub(crate) last_start: Duration,
    pub(crate) failures: u32,
    /// Between when and when the next one comes after a failed one.
    pub(crate) rest: (Duration, Duration),
    /// Somebody said that there is news, and no probe has begun since.
    pub(crate) wanted: bool,
}

/// A change of state that has to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    BackedOff { tenant: usize, failures: u32, message: Option<i64> },
    Recovered { tenant: usize },
    SubjectBackedOff { tenant: usize, subject: usize, failures: u32, message: i64 },
    SubjectRecovered { tenant: usize, subject: usize },
    ProbesFail,
    ProbesRecovered,
}

pub(crate) struct Replica {
    pub(crate) is_drain: bool,
    pub(crate) life: Life,
    pub(crate) relay: Relay,
    pub(crate) handle: Option<RelayHandle>,
    /// Its process stands still until then.
    pub(crate) frozen_until: Duration,
    /// For how long it stood still, or the whole world did.
    pub(crate) stood_still: Duration,
    pub(crate) tenants: Vec<TenantOf>,
    pub(crate) turns: usize,
    pub(crate) probes: ProbesOf,
    /// What must be told by now; `false` may be told.
    pub(crate) to_tell: Vec<(News, bool)>,
    /// How many messages are marked, as it heard.
    pub(crate) settled: u64,
}

impl Replica {
    pub(crate) fn new(relay: Relay, is_drain: bool, setting: &Setting) -> Self {
        Self {
            is_drain,
            life: Life::Working,
            relay,
            handle: None,
            frozen_until: Duration::ZERO,
            stood_still: Duration::ZERO,
            tenants: vec![TenantOf::new(); setting.tenants.len()],
            turns: 0,
            probes: ProbesOf::default(),
            to_tell: Vec::new(),
            settled: 0,
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.life == Life::Dead
    }

    pub(crate) fn is_working(&self) -> bool {
        self.life == Life::Working
    }

    /// Whether it is working or on its way to its end.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.life, Life::Working | Life::Stopping(_))
    }
}

impl TenantOf {
    pub(crate) fn new() -> Self {
        Self {
            place: Place::Idle,
            failures: 0,
            backs_off: false,
            refused: None,
            is_newer: false,
            full_since: None,
            is_unsure: false,
            last_end: None,
            held: BTreeMap::new(),
            turn: None,
            outcome: "empty",
        }
    }

    /// Since when it is due, if it is for sure.
    pub(crate) fn due_since(&self, now: Duration) -> Option<Duration> {
        match self.place {
            Place::Due(since) => Some(since),
            Place::Waiting { latest, .. } if latest <= now => Some(latest),
            _ => None,
        }
    }
}
