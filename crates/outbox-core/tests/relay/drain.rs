//! A drain ends, and says what came of each tenant.

use std::time::Duration;

use outbox_core::{ClaimRequest, DrainOutcome, RefusalClass, RelayConfig, RelayError, Store, StoreOperation};
use outbox_testkit::{PublishFault, StoreFault, When};

use crate::stage::{Stage, calm, config, tenant};

/// Empty, held elsewhere, refused and failed tenants: each is reported, and none keeps the drain from its end.
#[tokio::test]
async fn a_drain_ends_when_each_tenant_is_empty_held_or_refused_and_reports_which() {
    let stage = Stage::new();
    stage.write("full", 5_000);
    stage.write("held", 2);
    let refused = stage.write("refused", 3);
    let hostile = stage.table.append_unreadable(tenant("hostile"));
    stage.publisher.fail(When::Message(refused[1]), PublishFault::Refuse(RefusalClass::Rejected));
    let request = ClaimRequest::new(tenant("held"), std::num::NonZeroU32::MIN);
    let _held = stage.table.claim(&request).await.unwrap();
    let names = ["full", "held", "refused", "hostile", "nothing"];
    let relay = stage.relay_with(RelayConfig::builder().tenants(names));
    let report = relay.drain().await.unwrap();
    assert_eq!(report.published, 5_001);
    assert!(!report.is_complete());
    assert_eq!(report.tenants[&tenant("full")], DrainOutcome::Empty);
    assert_eq!(report.tenants[&tenant("nothing")], DrainOutcome::Empty);
    assert_eq!(report.tenants[&tenant("held")], DrainOutcome::HeldElsewhere);
    let reason = "refused, on purpose";
    let DrainOutcome::Refused { message, reason: told, .. } = &report.tenants[&tenant("refused")] else {
        panic!()
    };
    assert_eq!(*message, refused[1]);
    assert!(told.contains(reason), "{told}");
    let DrainOutcome::Failed { reason, .. } = &report.tenants[&tenant("hostile")] else { panic!() };
    assert!(reason.contains(&format!("message {hostile}")), "{reason}");
    assert_eq!(stage.marked("refused"), refused[..1]);
    stage.recorder.assert_in_order();
}

/// A drain of discovered tenants that empties all says so.
#[tokio::test]
async fn a_drain_of_discovered_tenants_is_complete() {
    let stage = Stage::new();
    for nth in 0..50 {
        stage.write(&format!("t{nth}"), 40);
    }
    let report = stage.relay().drain().await.unwrap();
    assert!(report.is_complete() && stage.all_marked());
    assert_eq!((report.published, report.tenants.len()), (2_000, 50));
    assert!(stage.relay().drain().await.unwrap().tenants.is_empty());
}

/// A drain that cannot probe says so.
#[tokio::test]
async fn a_drain_that_cannot_probe_is_an_error() {
    let stage = Stage::new();
    stage.store.fail(StoreOperation::Probe, StoreFault::Fail);
    let error = stage.relay().drain().await.unwrap_err();
    assert!(matches!(error, RelayError::Store(_)));
    assert_eq!(error.to_string(), "the outbox relay cannot drain: what is pending cannot be found out");
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(cause.as_deref(), Some("probe failed: it fails on purpose"));
}

/// A dropped drain stops as a relay does: after the message in flight, which is marked.
#[tokio::test]
async fn a_dropped_drain_stops_after_the_message_in_flight() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.write("b", 3);
    stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(500)));
    let relay = stage.relay_with(config().concurrency(1));
    let draining = tokio::spawn(async move { relay.drain().await });
    stage.pass(Duration::from_millis(100)).await;
    draining.abort();
    stage.pass(Duration::from_secs(2)).await;
    let first = stage.tried()[0];
    assert_eq!((stage.tried().len(), stage.table.published().len()), (1, 1));
    assert!(ids.contains(&first) || stage.marked("b").contains(&first));
    assert_eq!((stage.table.held(), stage.clock.sleepers()), (vec![], 0));
}

/// A dropped drain with a publish that never ends is over at the stop's deadline.
#[tokio::test]
async fn a_dropped_drain_ends_within_the_stops_deadline() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Every, PublishFault::Hang);
    let relay = stage.relay();
    let draining = tokio::spawn(async move { relay.drain().await });
    calm().await;
    draining.abort();
    stage.pass(Duration::from_secs(10)).await;
    assert_eq!((stage.table.held(), stage.clock.sleepers()), (vec![], 0));
}
