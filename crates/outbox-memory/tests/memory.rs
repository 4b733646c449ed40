//! What the reference store offers to tests, beside the laws.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    ClaimOutcome, ClaimRequest, MessageId, NewMessage, ProbeRequest, Settlement, Store, TenantId, Tenants,
};
use outbox_memory::MemoryStore;
use outbox_testkit::ManualClock;

fn acme() -> TenantId {
    TenantId::new("acme").expect("a valid tenant id")
}

fn row() -> NewMessage {
    NewMessage::tombstone(acme(), "kind", "subject")
}

/// Times and ages are the clock's: when a message happened, how old it is, and when it was marked.
#[tokio::test]
async fn the_store_takes_its_times_from_its_clock() {
    let clock = ManualClock::new();
    let store = MemoryStore::new().with_clock(Arc::new(clock.clone()));
    let id = store.append(row());
    clock.advance(Duration::from_secs(61));
    let oldest = store.probe(&ProbeRequest::new(Tenants::Discovered)).await.expect("a probe").oldest;
    assert_eq!(oldest[0].time.map(|time| time.age), Some(Duration::from_secs(61)));
    let request = ClaimRequest::new(acme(), NonZeroU32::MIN);
    let Ok(ClaimOutcome::Claimed(claimed)) = store.claim(&request).await else { panic!("nobody holds it") };
    assert_eq!(store.held(), [acme()]);
    claimed.claim.settle(Settlement::published([id])).await.expect("a settlement");
    let published = store.published();
    assert_eq!(published[0].message.occurred_at.until(published[0].published_at), Duration::from_secs(61));
    assert!(store.held().is_empty() && store.unpublished().is_empty());
    assert_eq!((store.purge_published(), store.published().len()), (1, 0));
}

/// Ids are drawn at the append: a late commit brings lower ids, a rollback and a drop leave gaps.
#[test]
fn ids_are_drawn_at_the_append() {
    let store = MemoryStore::new();
    let mut late = store.begin();
    let first = late.append(row());
    let mut undone = store.begin();
    undone.append(row());
    undone.rollback();
    drop(store.begin().append_all([row(), row()]));
    let ids = store.append_all([row(), row()]);
    assert_eq!(ids, [5, 6].map(MessageId::new));
    late.commit();
    let unpublished: Vec<_> = store.unpublished().iter().map(|message| message.id).collect();
    assert_eq!(unpublished, [first, ids[0], ids[1]]);
}

/// A source that was set is what every replica answers.
#[test]
fn a_replica_has_the_source_of_its_original() {
    let store = MemoryStore::new().with_source("orders");
    assert_eq!(store.clone().source(), "orders");
}
