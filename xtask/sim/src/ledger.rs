//! What is true of messages and claims, whatever a relay thinks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::Claim;

use crate::setting::{SUBJECTS, Setting, Shape};

/// A message that somebody appended.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) tenant: usize,
    pub(crate) subject: usize,
    pub(crate) bytes: usize,
    /// When it was committed, in the order of all that happened.
    pub(crate) committed: Option<u64>,
    /// Whether a publisher has accepted it, once or more often.
    pub(crate) is_accepted: bool,
    pub(crate) is_marked: bool,
    /// How often the receiver refuses it yet.
    pub(crate) refusals: u32,
}

/// How far a message of a claim came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    InFlight,
    Accepted,
    /// Its publisher said no, or panicked.
    Failed,
    /// Its future was dropped.
    Dropped,
}

/// What a relay heard of a message that it published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Nothing,
    Accepted,
    Refused,
    Abandoned,
}

/// The session that holds a tenant; who takes it out ends it.
pub(crate) type Session = Arc<Mutex<Option<Box<dyn Claim>>>>;

/// A claim that the store gave.
pub(crate) struct ClaimRecord {
    pub(crate) replica: usize,
    pub(crate) tenant: usize,
    pub(crate) session: Session,
    /// When the store was asked, whose answer proves last that the claim lives.
    pub(crate) proven: Duration,
    /// When it was read, in the order of all that happened.
    pub(crate) read: u64,
    /// When the relay heard of it.
    pub(crate) heard: Option<Duration>,
    pub(crate) messages: Vec<i64>,
    pub(crate) states: Vec<State>,
    pub(crate) told: Vec<Heard>,
    pub(crate) begun_at: Vec<Duration>,
    /// Its session was ended from outside.
    pub(crate) is_lost: bool,
    /// It is being settled: nothing is published under it any more.
    pub(crate) is_settling: bool,
    /// It was settled, or given up.
    pub(crate) is_over: bool,
    pub(crate) settled: usize,
    /// When the settlement was asked for, and whether the relay was told to stop by then.
    pub(crate) settle_asked: (Duration, bool),
}

pub(crate) struct Ledger {
    /// By id, from 1 on.
    messages: Vec<Message>,
    /// What is committed and not accepted yet, in each line that has an order.
    lines: Vec<BTreeSet<i64>>,
    by_subject: bool,
    pub(crate) claims: Vec<ClaimRecord>,
    /// The claims that are not over.
    pub(crate) open: Vec<usize>,
}

impl Ledger {
    pub(crate) fn new(setting: &Setting) -> Self {
        let by_subject = matches!(setting.shape, Shape::BySubject(_));
        let lines = vec![BTreeSet::new(); setting.tenants.len() * SUBJECTS];
        Self { messages: Vec::new(), lines, by_subject, claims: Vec::new(), open: Vec::new() }
    }

    pub(crate) fn appended(&mut self, id: i64, message: Message) {
        assert_eq!(index(id), self.messages.len(), "ids are drawn one after the other");
        self.messages.push(message);
    }

    pub(crate) fn message(&self, id: i64) -> &Message {
        &self.messages[index(id)]
    }

    pub(crate) fn message_mut(&mut self, id: i64) -> &mut Message {
        &mut self.messages[index(id)]
    }

    pub(crate) fn committed(&mut self, id: i64, count: u64) {
        self.message_mut(id).committed = Some(count);
        let line = self.line(id);
        self.lines[line].insert(id);
    }

    pub(crate) fn accepted(&mut self, id: i64) {
        self.message_mut(id).is_accepted = true;
        let line = self.line(id);
        self.lines[line].remove(&id);
    }

    /// The messages that must be accepted before this one is begun: those of its line with lower ids, committed
    /// before `read`.
    pub(crate) fn ahead_of(&self, id: i64, read: u64) -> impl Iterator<Item = i64> {
        let ahead = self.lines[self.line(id)].range(..id).copied();
        ahead.filter(move |ahead| self.message(*ahead).committed.is_some_and(|committed| committed < read))
    }

    /// The ids that are committed, with what became of them.
    pub(crate) fn all_committed(&self) -> impl Iterator<Item = (i64, &Message)> {
        (1..).zip(&self.messages).filter(|(_, message)| message.committed.is_some())
    }

    pub(crate) fn everything_is_marked(&self) -> bool {
        self.all_committed().all(|(_, message)| message.is_marked)
    }

    /// The receiver refuses nothing any more.
    pub(crate) fn heal(&mut self) {
        self.messages.iter_mut().for_each(|message| message.refusals = 0);
    }

    pub(crate) fn claimed(&mut self, record: ClaimRecord) -> usize {
        self.claims.push(record);
        self.open.push(self.claims.len() - 1);
        self.claims.len() - 1
    }

    pub(crate) fn over(&mut self, claim: usize) {
        self.claims[claim].is_over = true;
        self.open.retain(|open| *open != claim);
    }

    /// The claim under which a relay publishes now.
    pub(crate) fn claim_of(&self, replica: usize, tenant: usize) -> Option<usize> {
        self.open.iter().rev().copied().find(|claim| {
            let claim = &self.claims[*claim];
            claim.replica == replica && claim.tenant == tenant && claim.heard.is_some()
        })
    }

    fn line(&self, id: i64) -> usize {
        let message = self.message(id);
        message.tenant * SUBJECTS + if self.by_subject { message.subject } else { 0 }
    }
}

impl ClaimRecord {
    pub(crate) fn place(&self, id: i64) -> Option<usize> {
        self.messages.iter().position(|message| *message == id)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.states.iter().filter(|state| **state == State::InFlight).count()
    }

    /// How many messages were accepted, from the first on.
    pub(crate) fn prefix(&self) -> usize {
        self.states.iter().take_while(|state| **state == State::Accepted).count()
    }
}

fn index(id: i64) -> usize {
    usize::try_from(id - 1).expect("ids are positive")
}
