//! A publisher that blocks its thread: who is told of it, and what keeps others from waiting for it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::{Clock, TenantId};

/// How long the publisher's code may keep its thread before it counts as blocking: other tasks of the thread wait.
const TOO_LONG: Duration = Duration::from_secs(1);

/// How long the publisher's code runs apart after that.
const APART: Duration = Duration::from_secs(60);

/// How many tenants are told of, each once. The publisher is the same for all: further ones say nothing new.
const MOST: usize = 1_000;

/// What a relay knows of a publisher that blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    /// Until when the publisher's code runs apart, in milliseconds of the relay's clock; 0 is never.
    apart_until: AtomicU64,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    tenants: HashSet<TenantId>,
    /// Who is to be told of, and how long the thread was kept.
    next: Vec<(TenantId, Duration)>,
}

impl Blocking {
    /// Who is to be told of since the last time.
    pub(super) fn take(&self) -> Vec<(TenantId, Duration)> {
        std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner).next)
    }

    fn blocked(&self, tenant: &TenantId, now: Duration, took: Duration) {
        self.apart_until.store(millis(now.saturating_add(APART)), Ordering::Relaxed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.tenants.len() < MOST && told.tenants.insert(tenant.clone()) {
            told.next.push((tenant.clone(), took));
        }
    }
}

/// Runs code of the publisher's: a poll, or the drop of its future. Its panic is the caller's matter.
///
/// On a runtime of several threads, code that was found to block runs apart from then on: the thread's other tasks go
/// to another thread first. That costs a message some microseconds, so that it is not done before.
pub(super) fn watched<T>(
    blocking: &Blocking,
    clock: &dyn Clock,
    tenant: &TenantId,
    code: impl FnOnce() -> T,
) -> T {
    let begun = clock.monotonic();
    let apart = millis(begun) < blocking.apart_until.load(Ordering::Relaxed) && can_run_apart();
    let answer = if apart { block_in_place(code) } else { code() };
    let now = clock.monotonic();
    let took = now.saturating_sub(begun);
    if took >= TOO_LONG {
        blocking.blocked(tenant, now, took);
    }
    answer
}

/// The relay's tasks are spawned, so that on such a runtime they run on its workers.
fn can_run_apart() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same tenant is told of once, and what is kept of tenants has an end.
    #[test]
    fn each_tenant_is_told_of_once_and_a_thousand_at_most() {
        let blocking = Blocking::default();
        for _ in 0..2 {
            for index in 0..MOST + 100 {
                blocking.blocked(&TenantId::new(format!("tenant-{index}")).unwrap(), TOO_LONG, TOO_LONG);
            }
        }
        assert_eq!((blocking.take().len(), blocking.take().len()), (MOST, 0));
    }
}
