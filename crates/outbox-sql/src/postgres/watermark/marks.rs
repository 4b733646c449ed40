//! The watermarks of the tenants.

use std::collections::HashMap;
use std::time::Duration;

use outbox_core::TenantId;

/// How many tenants have one at most; those that were raised longest ago give theirs up.
const MOST: usize = 1024;

/// A tenant's watermark.
#[derive(Debug)]
pub(super) struct Mark {
    /// Nothing is pending below it, and itself it was settled.
    pub(super) id: i64,
    /// When the tenant was last looked at from zero.
    pub(super) looked_at: Duration,
    /// Since when it has to be, whenever that was.
    pub(super) due_since: Option<Duration>,
    /// How many of its messages this store settled, about so many dead entries are passed over.
    pub(super) settled: u64,
    /// The how manieth raise the last one was.
    pub(super) raised: u64,
}

impl Mark {
    pub(super) fn is_due(&self, now: Duration, look_every: Duration) -> bool {
        self.due_since.is_some() || now.saturating_sub(self.looked_at) >= look_every
    }

    /// The tenant was looked at from zero, by what began then.
    pub(super) fn looked(&mut self, at: Duration) {
        self.looked_at = self.looked_at.max(at);
        self.due_since = self.due_since.filter(|since| *since > at);
    }
}

#[derive(Debug, Default)]
pub(super) struct Marks {
    by_tenant: HashMap<TenantId, Mark>,
    /// How often one was raised.
    pub(super) raises: u64,
}

impl Marks {
    pub(super) fn forget(&mut self) {
        self.by_tenant.clear();
    }

    pub(super) fn get(&self, tenant: &TenantId) -> Option<&Mark> {
        self.by_tenant.get(tenant)
    }

    pub(super) fn get_mut(&mut self, tenant: &TenantId) -> Option<&mut Mark> {
        self.by_tenant.get_mut(tenant)
    }

    pub(super) fn remove(&mut self, tenant: &TenantId) {
        self.by_tenant.remove(tenant);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&TenantId, &Mark)> {
        self.by_tenant.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&TenantId, &mut Mark)> {
        self.by_tenant.iter_mut()
    }

    /// Raises a tenant's, or sets its first if it was looked at from zero at `looked_at`.
    pub(super) fn raise(&mut self, tenant: &TenantId, id: i64, settled: u64, looked_at: Option<Duration>) {
        self.raises += 1;
        if let Some(mark) = self.by_tenant.get_mut(tenant) {
            mark.settled = mark.settled.saturating_add(settled);
            if id > mark.id {
                (mark.id, mark.raised) = (id, self.raises);
            }
        } else if let Some(looked_at) = looked_at {
            let mark = Mark { id, looked_at, due_since: None, settled, raised: self.raises };
            self.by_tenant.insert(tenant.clone(), mark);
            if self.by_tenant.len() > MOST {
                self.make_room();
            }
        }
    }

    fn make_room(&mut self) {
        let mut raised: Vec<u64> = self.by_tenant.values().map(|mark| mark.raised).collect();
        raised.sort_unstable();
        let middle = raised.get(raised.len() / 2).copied().unwrap_or_default();
        self.by_tenant.retain(|_, mark| mark.raised >= middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenants_of_which_there_are_too_many_are_those_that_rest()
    -> Result<(), outbox_core::InvalidTenantId> {
        let mut marks = Marks::default();
        let tenants = (0..=MOST).map(|n| TenantId::new(n.to_string())).collect::<Result<Vec<_>, _>>()?;
        for tenant in &tenants {
            marks.raise(tenant, 1, 1, Some(Duration::ZERO));
        }
        assert!(marks.by_tenant.len() <= MOST);
        assert!(tenants.last().is_some_and(|tenant| marks.get(tenant).is_some()));
        assert!(tenants.first().is_some_and(|tenant| marks.get(tenant).is_none()));
        Ok(())
    }
}
