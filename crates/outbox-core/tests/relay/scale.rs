//! Batches that grow and shrink, and many tenants.

use std::time::Duration;

use outbox_core::{NewMessage, RefusalClass, StoreOperation};
use outbox_testkit::{PublishFault, StoreFault, When};

use crate::stage::{POLL, Stage, config, message, tenant};

/// Full batches grow fourfold up to the cap; the first empty or failed sweep brings the first size back.
#[tokio::test]
async fn the_store_sees_batches_grow_under_backlog_and_shrink_after_a_failure() {
    let stage = Stage::new();
    let ids = stage.write("a", 5_000);
    stage.publisher.fail_times(1, When::Message(ids[3_500]), PublishFault::Refuse(RefusalClass::Refused));
    let _running = stage.relay().start().unwrap();
    stage.until(|| stage.all_marked()).await;
    let grown = [32, 128, 512, 1_000, 1_000, 1_000];
    assert_eq!(stage.seen.limits()[..6], grown);
    assert_eq!(stage.seen.limits()[6..10], [32, 128, 512, 1_000]);
    stage.recorder.assert_in_order();
}

/// A slow publisher's batch is cut at its time, marked, and continued after the others had their turn.
#[tokio::test]
async fn a_slow_publishers_batch_is_cut_in_time() {
    let stage = Stage::new();
    stage.write("a", 40);
    stage.publisher.fail(When::Tenant(tenant("a")), PublishFault::Slow(Duration::from_millis(300)));
    let _running = stage.relay_with(config().concurrency(1)).start().unwrap();
    stage.pass(POLL).await;
    stage.write("b", 1);
    stage.pass(Duration::from_secs(1)).await;
    assert_eq!(stage.marked("a").len(), 4, "a second's worth");
    assert_eq!(stage.marked("b").len(), 1);
    stage.until(|| stage.all_marked()).await;
    assert!(stage.seen.limits().iter().skip(2).all(|limit| *limit <= 8), "{:?}", stage.seen.limits());
    assert_eq!(stage.store.started(StoreOperation::Verify), 0, "no batch was long enough");
}

/// A batch that its bytes cut short counts as a full one: the rest follows at once.
#[tokio::test]
async fn a_batch_cut_by_its_bytes_goes_on_at_once() {
    let payload = NewMessage::new(tenant("a"), "large", "1", vec![7_u8; 1_000]);
    let headers = NewMessage::tombstone(tenant("a"), "large", "1").with_header("h", "7".repeat(1_000));
    for large in [payload, headers] {
        let stage = Stage::new();
        stage.table.append_all(vec![large; 20]);
        let _running = stage.relay_with(config().max_batch_bytes(2_500)).start().unwrap();
        stage.pass(Duration::from_millis(1)).await;
        assert!(stage.all_marked());
        assert_eq!(stage.store.started(StoreOperation::Claim), 7, "batches of three");
    }
}

/// Ten thousand tenants with something each, four at a time: all of them served, none twice.
#[tokio::test]
async fn ten_thousand_tenants_are_served() {
    let stage = Stage::new();
    let names: Vec<String> = (0..10_000).map(|nth| format!("t{nth}")).collect();
    stage.table.append_all(names.iter().map(|name| message(name)));
    let relay = stage.builder(config(), stage.broker.clone()).build().unwrap();
    let _running = relay.start().unwrap();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.table.published().len(), 10_000);
    stage.broker.assert_no_duplicates();
    stage.pass(POLL * 2).await;
    assert_eq!(stage.store.started(StoreOperation::Claim), 10_000);
}

/// With one place and a tenant that is always full, each other due tenant waits for one batch of it.
#[tokio::test]
async fn a_backlog_of_one_tenant_leaves_turns_for_the_others() {
    let stage = Stage::new();
    stage.write("a", 20_000);
    stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(1)));
    let relay = stage.relay_with(config().concurrency(1).max_batch(100));
    let _running = relay.start().unwrap();
    for _ in 0..20 {
        let ids = stage.write("b", 1);
        relay.wake();
        stage.pass(Duration::from_millis(110)).await;
        assert!(stage.marked("b").ends_with(&ids), "it waits behind more than one batch");
    }
}

/// The time that bounds a batch is that of its publishing: behind a slow database batches stay large.
#[tokio::test]
async fn a_slow_claim_makes_no_batch_smaller() {
    let stage = Stage::new();
    stage.write("a", 96);
    stage.store.fail(StoreOperation::Claim, StoreFault::Slow(Duration::from_millis(1_100)));
    let relay = stage.relay_with(config().max_batch_time(Duration::from_secs(1)));
    let _running = relay.start().unwrap();
    stage.until(|| stage.all_marked()).await;
    // 32, then the rest, and one that finds nothing more.
    assert!(stage.store.started(StoreOperation::Claim) <= 3);
}
