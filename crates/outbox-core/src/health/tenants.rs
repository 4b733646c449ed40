//! The tenants of a report.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Peekable;
use std::sync::Arc;

use crate::{TenantHealth, TenantId};

/// Each tenant that is named, has something pending, or that the relay is busy with, in the order of their names.
///
/// It takes the time and the memory of those that there is something to say about, however many are named.
#[derive(Clone, Eq)]
pub struct TenantReports {
    /// Sorted, each once.
    named: Arc<[TenantId]>,
    told: BTreeMap<TenantId, TenantHealth>,
    /// What is said of every other.
    quiet: TenantHealth,
}

impl TenantReports {
    /// Nothing yet to say about these, which are [`sorted`].
    pub(super) fn new(named: Arc<[TenantId]>, probed: bool) -> Self {
        Self { named, told: BTreeMap::new(), quiet: TenantHealth { probed, ..TenantHealth::default() } }
    }

    /// What is said of a tenant, to be changed.
    pub(super) fn entry(&mut self, tenant: TenantId) -> &mut TenantHealth {
        self.told.entry(tenant).or_insert_with(|| self.quiet.clone())
    }

    /// What is said of a tenant, by its id or by its text; `None` if it is not here.
    pub fn get<T: AsRef<str> + ?Sized>(&self, tenant: &T) -> Option<&TenantHealth> {
        let tenant = tenant.as_ref();
        let named = || self.named.binary_search_by(|named| named.as_str().cmp(tenant)).is_ok();
        self.told.get(tenant).or_else(|| named().then_some(&self.quiet))
    }

    /// Whether a tenant is here.
    pub fn contains<T: AsRef<str> + ?Sized>(&self, tenant: &T) -> bool {
        self.get(tenant).is_some()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.told.is_empty()
    }

    /// Each tenant, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&TenantId, &TenantHealth)> {
        InOrder { named: self.named.iter().peekable(), told: self.told.iter().peekable(), quiet: &self.quiet }
    }
}

/// Tenants sorted by their names, each once.
pub(super) fn sorted(tenants: &[TenantId]) -> Arc<[TenantId]> {
    let mut tenants = tenants.to_vec();
    tenants.sort_unstable();
    tenants.dedup();
    tenants.into()
}

impl PartialEq for TenantReports {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for TenantReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'t> IntoIterator for &'t TenantReports {
    type Item = (&'t TenantId, &'t TenantHealth);
    type IntoIter = Box<dyn Iterator<Item = Self::Item> + 't>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

/// Both, merged.
struct InOrder<'t, N: Iterator, T: Iterator> {
    named: Peekable<N>,
    told: Peekable<T>,
    quiet: &'t TenantHealth,
}

impl<'t, N, T> Iterator for InOrder<'t, N, T>
where
    N: Iterator<Item = &'t TenantId>,
    T: Iterator<Item = (&'t TenantId, &'t TenantHealth)>,
{
    type Item = (&'t TenantId, &'t TenantHealth);

    fn next(&mut self) -> Option<Self::Item> {
        let Some((told, _)) = self.told.peek().copied() else {
            return self.named.next().map(|named| (named, self.quiet));
        };
        match self.named.next_if(|named| *named <= told) {
            Some(named) if named < told => Some((named, self.quiet)),
            _ => self.told.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// It is the map that it stands for.
        #[test]
        fn it_reads_like_a_map_of_all(
            named in proptest::collection::vec("[a-e]{1,2}", 0..8),
            told in proptest::collection::vec("[a-e]{1,2}", 0..8),
            probed: bool,
        ) {
            let ids = |names: &[String]| {
                names.iter().filter_map(|name| TenantId::new(name.as_str()).ok()).collect::<Vec<_>>()
            };
            let quiet = TenantHealth { probed, ..TenantHealth::default() };
            let late = TenantHealth { behind: true, ..quiet.clone() };
            let mut reports = TenantReports::new(sorted(&ids(&named)), probed);
            let mut map: BTreeMap<_, _> = ids(&named).into_iter().map(|tenant| (tenant, quiet.clone())).collect();
            for tenant in ids(&told) {
                *reports.entry(tenant.clone()) = late.clone();
                map.insert(tenant, late.clone());
            }
            prop_assert!(reports.iter().eq(map.iter()), "{reports:?}");
            prop_assert!((&reports).into_iter().eq(&map));
            prop_assert_eq!((reports.len(), reports.is_empty()), (map.len(), map.is_empty()));
            for name in ["a", "b", "c", "d", "e", "aa", "cd", "ee", "zz"] {
                prop_assert_eq!(reports.get(name), map.get(name));
                prop_assert_eq!(reports.contains(name), map.contains_key(name));
            }
        }
    }
}
