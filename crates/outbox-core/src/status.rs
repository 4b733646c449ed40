//! What the relay is doing right now, for health to read.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{MessageId, TenantId};

/// Whether a relay works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RelayState {
    /// It was built and not started.
    #[default]
    NotStarted,
    /// It works.
    Running,
    /// It was told to stop and holds nothing any more.
    Stopped,
    /// Its task ended without being told to.
    Dead,
}

impl fmt::Display for RelayState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStarted => "not started",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Dead => "dead",
        })
    }
}

/// What a relay is doing with a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TenantState {
    /// Nothing: it has no message that is due.
    #[default]
    Idle,
    /// It is being swept.
    Sweeping,
    /// Another relay held it when this one looked last.
    HeldElsewhere,
    /// It waits after failures.
    #[non_exhaustive]
    BackingOff {
        /// How many in a row.
        failures: u32,
        /// How long it waits after the last one.
        wait: Duration,
        /// The message that was refused, if it was one.
        message: Option<MessageId>,
        /// What the last one was: the publisher's words, or the store's.
        reason: String,
    },
}

/// A subject that waits after refusals, while the tenant's others go on: [`Publishing::by_subject`](crate::Publishing).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldSubject {
    /// Which.
    pub subject_id: String,
    /// How many refusals in a row.
    pub failures: u32,
    /// How long it waits after the last one.
    pub wait: Duration,
    /// The message that was refused.
    pub message: MessageId,
    /// The publisher's words.
    pub reason: String,
}

/// Shared by a relay's run and its health.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    relay: RelayState,
    /// How many runs of this relay work now.
    runs: usize,
    tenants: HashMap<TenantId, TenantState>,
    held: HashMap<TenantId, Vec<HeldSubject>>,
}

impl Board {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn relay(&self) -> RelayState {
        self.entries().relay
    }

    pub(crate) fn tenants(&self) -> HashMap<TenantId, TenantState> {
        self.entries().tenants.clone()
    }

    pub(crate) fn held_subjects(&self) -> HashMap<TenantId, Vec<HeldSubject>> {
        self.entries().held.clone()
    }

    pub(crate) fn set_held_subjects(&self, tenant: &TenantId, subjects: Vec<HeldSubject>) {
        let mut entries = self.entries();
        if subjects.is_empty() {
            entries.held.remove(tenant);
        } else {
            entries.held.insert(tenant.clone(), subjects);
        }
    }

    pub(crate) fn set_tenant(&self, tenant: &TenantId, state: TenantState) {
        let mut entries = self.entries();
        if state == TenantState::Idle {
            entries.tenants.remove(tenant);
        } else {
            entries.tenants.insert(tenant.clone(), state);
        }
    }

    /// A run begins; it counts as dead unless it says that it stopped.
    pub(crate) fn begin(board: &Arc<Self>) -> Run {
        let mut entries = board.entries();
        entries.runs += 1;
        entries.relay = RelayState::Running;
        drop(entries);
        Run { board: Arc::clone(board), stopped: false }
    }
}

/// One run of a relay, on the board.
pub(crate) struct Run {
    board: Arc<Board>,
    stopped: bool,
}

impl Run {
    pub(crate) fn stopped(mut self) {
        self.stopped = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut entries = self.board.entries();
        entries.runs -= 1;
        if !self.stopped {
            entries.relay = RelayState::Dead;
        } else if entries.runs == 0 {
            entries.relay = RelayState::Stopped;
        }
        if entries.runs == 0 {
            entries.tenants.clear();
            entries.held.clear();
        }
    }
}
