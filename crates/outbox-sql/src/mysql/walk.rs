//! Finding the tenants that have something, from one to the next.

use outbox_core::{MessageId, OldestPending, Probed, StoreError};

use super::server::{READ_ONLY, read_only};
use crate::row;

/// What a probe answers about a tenant: a step of the walk, or the question about named ones. One row is about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalkedTenant {
    /// The bytes of its id.
    pub(crate) tenant: Vec<u8>,
    /// The lowest id met.
    pub(crate) id: i64,
    /// How many of its entries were met.
    pub(crate) entries: i64,
    /// When that message happened, in microseconds since 1970; `None` if it cannot be read.
    pub(crate) micros: Option<i64>,
    /// The server's time, in microseconds since 1970.
    pub(crate) now: i64,
}

/// A walk over the tenants that have something pending, by repeated
/// [`probe_next`](super::MySqlStatements::probe_next).
///
/// Neither MySQL nor MariaDB leaps over a tenant's entries within a statement: they do so for a value that is
/// known beforehand only. So a step meets a number of entries, and the next one begins after the last tenant met.
/// Its cost does not grow with the rows: a step costs little, there is one more for a tenant with more than a step
/// meets at most, and steps are short where tenants have many.
#[derive(Debug)]
pub(crate) struct Walk {
    after: Vec<u8>,
    limit: i64,
    found: Vec<OldestPending>,
    /// What the server calls itself, and whether it is read-only.
    server: Option<(String, bool)>,
}

const FIRST: i64 = 256;
const LEAST: i64 = 16;
const MOST: i64 = 4_096;

impl Walk {
    /// A walk from the first tenant on.
    pub(crate) fn new() -> Self {
        Self { after: Vec::new(), limit: FIRST, found: Vec::new(), server: None }
    }

    /// The next step's parameters: the tenant after which to look, and how many entries to meet.
    pub(crate) fn step(&self) -> (&[u8], i64) {
        (&self.after, self.limit)
    }

    /// Takes what a probe of named tenants answered, which is all in one step.
    pub(crate) fn named(tenants: Vec<WalkedTenant>) -> Self {
        let mut walk = Self::new();
        walk.take(tenants);
        walk
    }

    /// Takes what a step answered, and says whether there is another. A step that leads no further is the last:
    /// so it is where the tenants' column does not compare by bytes, which `check()` tells.
    pub(crate) fn take(&mut self, tenants: Vec<WalkedTenant>) -> bool {
        let mut further = false;
        let (tenants, server): (Vec<_>, Vec<_>) = tenants.into_iter().partition(|row| row.entries > 0);
        if let Some(row) = server.into_iter().next() {
            self.server = Some((String::from_utf8_lossy(&row.tenant).into_owned(), row.entries == READ_ONLY));
        }
        let met: i64 = tenants.iter().map(|tenant| tenant.entries).sum();
        let more = met >= self.limit;
        let count = i64::try_from(tenants.len()).unwrap_or(MOST);
        self.limit = (count * 4).clamp(LEAST, MOST);
        for WalkedTenant { tenant, id, micros, now, .. } in tenants {
            if tenant > self.after {
                self.after.clone_from(&tenant);
                further = true;
            }
            self.found.extend(row::oldest(tenant, MessageId::new(id), micros, now));
        }
        more && further
    }

    /// Whether the server takes writes, so that its session may be used again.
    pub(crate) fn takes_writes(&self) -> bool {
        self.server.as_ref().is_none_or(|(_, is_read_only)| !is_read_only)
    }

    /// What was found.
    ///
    /// # Errors
    /// A transient error, if the server is read-only.
    pub(crate) fn found(self) -> Result<Probed, StoreError> {
        if !self.takes_writes() {
            return Err(read_only());
        }
        let mut probed = Probed::from(self.found);
        probed.server = self.server.map(|(name, _)| name);
        Ok(probed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str, entries: i64) -> WalkedTenant {
        WalkedTenant { tenant: name.into(), id: 1, entries, micros: Some(0), now: 5 }
    }

    #[test]
    fn a_step_that_met_fewer_entries_than_it_might_was_the_last() {
        let mut walk = Walk::new();
        assert_eq!(walk.step(), (&b""[..], FIRST));
        assert!(!walk.take(vec![tenant("a", FIRST - 1)]));
        assert_eq!(walk.found().unwrap().oldest.len(), 1);
    }

    #[test]
    fn the_next_step_begins_after_the_last_tenant_and_is_as_long_as_they_are_many() {
        let mut walk = Walk::new();
        assert!(walk.take(vec![tenant("b", FIRST - 1), tenant("a", 1)]));
        assert_eq!(walk.step(), (&b"b"[..], LEAST));
        assert!(walk.take((0..LEAST).map(|index| tenant(&format!("c{index:02}"), 1)).collect()));
        assert_eq!(walk.step(), (&b"c15"[..], 64));
        assert!(!walk.take(Vec::new()));
        assert_eq!(walk.found().unwrap().oldest.len(), 18);
    }

    #[test]
    fn a_step_that_leads_no_further_is_the_last() {
        let mut walk = Walk::new();
        assert!(walk.take(vec![tenant("b", FIRST)]));
        assert!(!walk.take(vec![tenant("B", LEAST)]));
    }

    #[test]
    fn a_tenant_that_is_no_text_is_left_out_and_ends_nothing() {
        let mut walk = Walk::new();
        let hostile = WalkedTenant { tenant: vec![0xff], ..tenant("", FIRST) };
        assert!(walk.take(vec![hostile]));
        assert_eq!(walk.step().0, [0xff]);
        assert!(walk.found().unwrap().oldest.is_empty());
    }

    /// The row of the server is no tenant's: it ends no walk, and is where none other is.
    #[test]
    fn a_server_that_is_read_only_is_refused() {
        let server = |entries| WalkedTenant { id: 0, ..tenant("host 3306 1", entries) };
        let mut walk = Walk::new();
        assert!(walk.take(vec![tenant("a", FIRST), server(-1)]));
        assert_eq!(walk.step(), (&b"a"[..], LEAST));
        assert!(!walk.take(vec![server(-1)]));
        let found = walk.found().unwrap();
        assert_eq!((found.oldest.len(), found.server.as_deref()), (1, Some("host 3306 1")));
        let walk = Walk::named(vec![tenant("a", 1), server(READ_ONLY)]);
        assert!(!walk.takes_writes());
        assert!(walk.found().is_err_and(|error| error.message().contains("read-only")));
    }
}
