//! One probe a poll, whatever the number of tenants; a failed one is nobody's failure.

use std::time::Duration;

use futures_util::FutureExt;
use outbox_core::{OperationKind, RefusalClass, StoreOperation};
use outbox_testkit::{PublishFault, StoreFault, When};

use crate::log::Log;
use crate::seen::Told;
use crate::stage::{POLL, Stage, calm, config};

/// S39: a thousand idle tenants cost one probe a poll and no claim.
#[tokio::test]
async fn a_thousand_idle_tenants_cost_one_probe_a_poll() {
    let stage = Stage::new();
    let names: Vec<String> = (0..1_000).map(|nth| format!("t{nth}")).collect();
    let relay = stage.relay_with(outbox_core::RelayConfig::builder().tenants(names).poll_interval(POLL));
    let _running = relay.start().unwrap();
    stage.pass(Duration::from_secs(60)).await;
    assert_eq!(stage.store.started(StoreOperation::Probe), 301);
    assert_eq!(stage.store.started(StoreOperation::Claim), 0);
    stage.write("t500", 1);
    stage.pass(POLL).await;
    assert_eq!(stage.store.started(StoreOperation::Claim), 1, "only where something is pending");
    assert!(stage.all_marked());
}

/// The poll interval is from one probe's start to the next one's; a probe that takes longer is followed at once.
#[tokio::test]
async fn the_poll_interval_is_from_one_probes_start_to_the_next_ones() {
    for (took, probes) in [(POLL / 2, 301), (POLL * 3, 101)] {
        let stage = Stage::new();
        stage.store.fail(StoreOperation::Probe, StoreFault::Slow(took));
        let running = stage.relay().start().unwrap();
        stage.pass(Duration::from_secs(60)).await;
        assert_eq!(stage.store.started(StoreOperation::Probe), probes, "{took:?}");
        running.stop().now_or_never();
        stage.pass(POLL * 3).await;
    }
}

/// Only the relay's own tenants are swept; with discovery, whichever there are.
#[tokio::test]
async fn named_tenants_are_served_alone_and_discovered_ones_all() {
    let stage = Stage::new();
    stage.write("mine", 1);
    stage.write("foreign", 1);
    let named = stage.relay_with(outbox_core::RelayConfig::builder().tenants(["mine", "empty"]));
    let running = named.start().unwrap();
    stage.pass(POLL * 5).await;
    assert_eq!((stage.marked("mine").len(), stage.marked("foreign").len()), (1, 0));
    running.stop().await.unwrap();
    let _running = stage.relay().start().unwrap();
    stage.pass(POLL).await;
    stage.write("new", 1);
    stage.pass(POLL).await;
    assert!(stage.all_marked());
}

/// S48: ten minutes without a database: few probes, one line when it goes and one when it comes back, nobody
/// charged, and work within seconds after it came back.
#[tokio::test]
async fn failed_probes_back_off_charge_nobody_and_write_one_line_a_change() {
    let stage = Stage::new();
    let (log, _guard) = Log::collect();
    stage.store.fail(StoreOperation::Probe, StoreFault::Fail);
    let _running = stage.relay().start().unwrap();
    stage.write("a", 1);
    stage.pass(Duration::from_secs(600)).await;
    let probes = stage.store.started(StoreOperation::Probe);
    assert!((100..200).contains(&probes), "{probes} probes in ten minutes");
    assert_eq!(stage.seen.notices(), [Told::Started, Told::ProbeFailing]);
    stage.store.heal();
    stage.pass(Duration::from_secs(5)).await;
    assert!(stage.all_marked());
    assert_eq!(stage.seen.notices(), [Told::Started, Told::ProbeFailing, Told::ProbeRecovered]);
    let expected = [
        "outbox relay started",
        "outbox probes fail; no new work is found meanwhile",
        "outbox probes succeed again",
    ];
    assert_eq!(log.lines(), expected);
}

/// A tenant that backs off writes one line when it begins and one when it is over.
#[tokio::test]
async fn a_tenant_that_backs_off_writes_one_line_a_change() {
    let stage = Stage::new();
    let (log, _guard) = Log::collect();
    stage.write("a", 1);
    stage.publisher.fail_times(8, When::Every, PublishFault::Refuse(RefusalClass::Unavailable));
    let running = stage.relay().start().unwrap();
    stage.until(|| stage.all_marked()).await;
    running.stop().await.unwrap();
    let expected = [
        "outbox relay started",
        "outbox tenant backs off; its message is tried again until it is accepted",
        "outbox tenant recovered",
        "outbox relay stopped",
    ];
    assert_eq!(log.lines(), expected);
}

/// A tenant that backs off keeps its own wait while probes fail and come back.
#[tokio::test]
async fn a_failed_probe_changes_no_tenants_back_off() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Refused));
    let _running = stage.relay().start().unwrap();
    stage.until(|| stage.seen.back_offs("a").len() == 4).await;
    stage.store.fail(StoreOperation::Probe, StoreFault::Fail);
    stage.until(|| stage.seen.back_offs("a").len() == 6).await;
    stage.store.heal();
    stage.until(|| stage.seen.back_offs("a").len() == 8).await;
    let failures: Vec<u32> = stage.seen.back_offs("a").iter().map(|(failures, _)| *failures).collect();
    assert_eq!(failures, [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// The claim has its own errors: a probe in between that succeeds clears none of them.
#[tokio::test]
async fn a_tenant_that_is_emptied_by_another_recovers() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Refused));
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    calm().await;
    assert_eq!(stage.seen.back_offs("a").len(), 1);
    stage.builder(config(), stage.broker.clone()).build().unwrap().drain().await.unwrap();
    stage.pass(POLL).await;
    assert_eq!(stage.seen.notices().last(), Some(&Told::Recovered("a".to_owned())));
    assert_eq!(stage.seen.starts(OperationKind::Publish), 1);
    let report = relay.health().check().await;
    assert!(!report.tenants.contains("a"), "{report:?}");
}
