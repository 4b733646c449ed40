//! Looking for many tenants by name.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use outbox_core::{OldestPending, StoreError, StoreOperation, TenantId, Tenants};

/// How many tenants are looked for one by one. If there are more, all that have something pending are answered, and
/// those that nobody asked for are left out here: that costs as much as there are tenants with something pending, and
/// not as there are names.
pub(crate) const ONE_BY_ONE: usize = 100;

/// How a probe looks for the tenants that it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look<'r> {
    /// Those that are looked for one by one; `None` if all that have something pending are.
    pub(crate) one_by_one: Option<&'r [TenantId]>,
    /// Those that are to be [kept](Named::keep) of what was found; `None` if all are.
    pub(crate) kept: Option<&'r Arc<[TenantId]>>,
}

impl<'r> Look<'r> {
    /// How to look for these.
    ///
    /// # Errors
    /// A permanent [`StoreError`], if they are given in a way that is newer than this.
    pub(crate) fn of(tenants: &'r Tenants) -> Result<Self, StoreError> {
        match tenants {
            Tenants::Named(names) if names.len() <= ONE_BY_ONE => {
                Ok(Self { one_by_one: Some(names), kept: None })
            }
            Tenants::Named(names) => Ok(Self { one_by_one: None, kept: Some(names) }),
            Tenants::Discovered => Ok(Self { one_by_one: None, kept: None }),
            other => {
                let unknown = format!("this store does not know how to look for tenants by {other:?}");
                Err(StoreError::permanent(StoreOperation::Probe, unknown))
            }
        }
    }
}

/// The names that were asked for last: a relay asks for the same ones at every poll.
#[derive(Debug, Default)]
pub(crate) struct Named(Mutex<Option<Known>>);

#[derive(Debug, Clone)]
struct Known {
    tenants: Arc<[TenantId]>,
    set: Arc<HashSet<TenantId>>,
}

impl Named {
    /// Keeps what was found of these tenants.
    pub(crate) fn keep(&self, tenants: &Arc<[TenantId]>, found: &mut Vec<OldestPending>) {
        let set = self.set(tenants);
        found.retain(|oldest| set.contains(&oldest.tenant_id));
    }

    fn set(&self, tenants: &Arc<[TenantId]>) -> Arc<HashSet<TenantId>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(known) if Arc::ptr_eq(&known.tenants, tenants) => Arc::clone(&known.set),
            _ => {
                let set = Arc::new(tenants.iter().cloned().collect());
                Arc::clone(&known.insert(Known { tenants: Arc::clone(tenants), set }).set)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use outbox_core::{InvalidTenantId, MessageId};

    use super::*;

    /// Each request is answered by its own names, whatever was asked for before.
    #[test]
    fn only_what_was_asked_for_is_kept() -> Result<(), InvalidTenantId> {
        let tenant = |name: &str| TenantId::new(name);
        let named = Named::default();
        let (one, other): (Arc<[_]>, Arc<[_]>) = ([tenant("a")?, tenant("c")?].into(), [tenant("b")?].into());
        for (tenants, kept) in [(&one, vec!["a", "c"]), (&one, vec!["a", "c"]), (&other, vec!["b"])] {
            let mut found = Vec::new();
            for name in ["a", "b", "c", "d"] {
                found.push(OldestPending::unreadable(tenant(name)?, MessageId::new(1)));
            }
            named.keep(tenants, &mut found);
            let found: Vec<_> = found.iter().map(|oldest| oldest.tenant_id.as_str()).collect();
            assert_eq!(found, kept);
        }
        Ok(())
    }
}
