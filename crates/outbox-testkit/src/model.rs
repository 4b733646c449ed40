//! What a store ought to do, in a few lines: the model that random stories are compared with.

use std::collections::BTreeMap;
use std::fmt;

use outbox_core::MessageId;
use proptest::prelude::*;

/// The tenants of a story, by number.
pub const TENANTS: usize = 3;

/// The replicas of a story, by number.
pub const REPLICAS: usize = 2;

/// A step of a story. Transactions and claims are named by their place among those that are open; a step
/// about one, when there is none, does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Begins a transaction and writes a row for each of these tenants, in this order.
    Write(Vec<usize>),
    /// Commits an open transaction.
    Commit(usize),
    /// Rolls an open transaction back.
    RollBack(usize),
    /// A replica claims a tenant, with a limit, without the subjects whose number is set in the bit mask.
    Claim(usize, usize, u32, u8),
    /// Verifies a claim.
    Verify(usize),
    /// Settles those messages of a claim whose place in its batch is set in the bit mask.
    Settle(usize, u32),
    /// Drops a claim.
    Drop(usize),
    /// A replica probes every tenant.
    Probe(usize),
    /// A replica looks at a tenant's pending messages, with a limit.
    Pending(usize, usize, u32),
}

impl Step {
    /// Any step; those that make a story go on are more likely.
    pub fn any() -> impl Strategy<Value = Self> {
        let (tenant, replica, open) = (0..TENANTS, 0..REPLICAS, 0..4_usize);
        prop_oneof![
            4 => prop::collection::vec(tenant.clone(), 1..9).prop_map(Self::Write),
            6 => open.clone().prop_map(Self::Commit),
            1 => open.clone().prop_map(Self::RollBack),
            6 => (replica.clone(), tenant.clone(), 1..6_u32, prop_oneof![2 => Just(0), 1 => any::<u8>()])
                .prop_map(|(r, t, limit, without)| Self::Claim(r, t, limit, without)),
            1 => open.clone().prop_map(Self::Verify),
            5 => (open.clone(), 0..32_u32).prop_map(|(claim, mask)| Self::Settle(claim, mask)),
            1 => open.prop_map(Self::Drop),
            2 => replica.clone().prop_map(Self::Probe),
            4 => (replica, tenant, 1..6_u32).prop_map(|(r, t, limit)| Self::Pending(r, t, limit)),
        ]
    }

    /// Any story of up to so many steps.
    pub fn story(steps: usize) -> impl Strategy<Value = Vec<Self>> {
        prop::collection::vec(Self::any(), 1..=steps)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(tenants) => write!(f, "begin, and write rows of tenants {tenants:?}"),
            Self::Commit(write) => write!(f, "commit open transaction {write}"),
            Self::RollBack(write) => write!(f, "roll back open transaction {write}"),
            Self::Claim(replica, tenant, limit, without) => write!(
                f,
                "replica {replica} claims tenant {tenant}, at most {limit} messages, without the subjects \
                 {without:08b}"
            ),
            Self::Verify(claim) => write!(f, "verify claim {claim}"),
            Self::Settle(claim, mask) => write!(f, "settle of claim {claim} the messages {mask:05b}"),
            Self::Drop(claim) => write!(f, "drop claim {claim}"),
            Self::Probe(replica) => write!(f, "replica {replica} probes"),
            Self::Pending(replica, tenant, limit) => {
                write!(f, "replica {replica} looks at tenant {tenant}, at most {limit} messages")
            }
        }
    }
}

/// The state of a table: what is pending, who is held, and what is still open.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Of each tenant, the messages with their subjects' numbers.
    pending: BTreeMap<usize, BTreeMap<MessageId, usize>>,
    writes: Vec<Vec<(usize, MessageId)>>,
    claims: Vec<(usize, Vec<MessageId>)>,
    last_id: Option<MessageId>,
}

impl Model {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether these may be the ids of rows written now: rising, and higher than every one that was committed
    /// or is open. One that was rolled back may be issued again: nobody saw a row of it.
    pub fn may_issue(&self, ids: &[MessageId]) -> bool {
        let open = self.writes.iter().flatten().map(|(_, id)| id).max();
        ids.first() > open.max(self.last_id.as_ref()) && ids.is_sorted_by(|a, b| a < b)
    }

    /// A transaction wrote rows of these tenants and is open now. A row's subject is its place among them.
    pub fn write(&mut self, tenants: &[usize], ids: &[MessageId]) {
        self.writes.push(tenants.iter().copied().zip(ids.iter().copied()).collect());
    }

    /// An open transaction commits.
    pub fn commit(&mut self, write: usize) {
        for (subject, (tenant, id)) in self.writes.remove(write).into_iter().enumerate() {
            self.last_id = self.last_id.max(Some(id));
            self.pending.entry(tenant).or_default().insert(id, subject);
        }
    }

    /// An open transaction rolls back.
    pub fn roll_back(&mut self, write: usize) {
        self.writes.remove(write);
    }

    /// What a claim hands out; `None` if the tenant is held.
    pub fn claim(&mut self, tenant: usize, limit: u32, without: u8) -> Option<Vec<MessageId>> {
        if self.claims.iter().any(|(held, _)| *held == tenant) {
            return None;
        }
        let others = self.pending.get(&tenant).into_iter().flatten();
        let others = others.filter(|(_, subject)| !excluded(without).any(|without| without == **subject));
        let batch: Vec<_> = others.map(|(id, _)| *id).take(limit as usize).collect();
        self.claims.push((tenant, batch.clone()));
        Some(batch)
    }

    /// The messages of a claim that a mask picks.
    pub fn picked(&self, claim: usize, mask: u32) -> Vec<MessageId> {
        let batch = self.claims[claim].1.iter().enumerate();
        batch.filter(|(place, _)| mask >> place & 1 == 1).map(|(_, id)| *id).collect()
    }

    /// A claim is settled with these messages as published, or dropped with none.
    pub fn end_claim(&mut self, claim: usize, published: &[MessageId]) {
        let (tenant, _) = self.claims.remove(claim);
        if let Some(pending) = self.pending.get_mut(&tenant) {
            pending.retain(|id, _| !published.contains(id));
        }
    }

    /// Each tenant's lowest pending id, in the order of the tenants.
    pub fn probe(&self) -> Vec<(usize, MessageId)> {
        self.pending.iter().filter_map(|(tenant, ids)| Some((*tenant, *ids.first_key_value()?.0))).collect()
    }

    /// A tenant's oldest pending ids.
    pub fn pending(&self, tenant: usize, limit: u32) -> Vec<MessageId> {
        self.pending.get(&tenant).into_iter().flatten().map(|(id, _)| *id).take(limit as usize).collect()
    }

    /// How many transactions are open.
    pub fn open_writes(&self) -> usize {
        self.writes.len()
    }

    /// How many claims are open.
    pub fn open_claims(&self) -> usize {
        self.claims.len()
    }
}

/// The numbers of the subjects that a mask leaves out.
pub(crate) fn excluded(without: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |subject| without >> subject & 1 == 1)
}
