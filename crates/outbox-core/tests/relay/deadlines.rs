//! A store that does not answer: the place is given back, and its future is not dropped (the stage checks it).

use std::time::Duration;

use outbox_core::{OperationKind, StoreOperation};
use outbox_testkit::{PublishFault, StoreFault, When};

use crate::seen::{End, Told};
use crate::stage::{POLL, Stage, calm, config, tenant};

const DEADLINE: Duration = Duration::from_secs(30);

fn silent(operation: StoreOperation) -> String {
    format!("{operation} failed: no answer from the store within 30000 ms")
}

/// A claim or a settlement that never ends costs its tenant the deadline, and the others no more than that.
#[tokio::test]
async fn a_hanging_claim_or_settle_gives_its_place_back() {
    for operation in [StoreOperation::Claim, StoreOperation::Settle] {
        let stage = Stage::new();
        stage.write("a", 1);
        stage.store.fail_nth(1, operation, StoreFault::Hang);
        let _running = stage.relay_with(config().concurrency(1)).start().unwrap();
        stage.pass(POLL).await;
        stage.write("b", 1);
        stage.pass(DEADLINE + POLL).await;
        assert_eq!(stage.marked("b").len(), 1, "{operation}");
        assert_eq!(stage.seen.last_reason(), ("a".to_owned(), silent(operation)));
        assert_eq!(stage.store.dropped(), []);
    }
}

/// A verification that never ends stops the batch: no further message, nothing marked.
#[tokio::test]
async fn a_hanging_verify_stops_the_batch() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(1_100)));
    stage.store.fail_nth(1, StoreOperation::Verify, StoreFault::Hang);
    let running = stage.relay_with(config().max_batch_time(Duration::from_secs(60)).concurrency(1));
    let _running = running.start().unwrap();
    stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
    assert_eq!((stage.tried(), stage.marked("a")), (ids[..1].to_vec(), vec![]));
    assert_eq!(stage.seen.last_reason().1, silent(StoreOperation::Verify));
    stage.write("b", 1);
    stage.until(|| stage.marked("b").len() == 1).await;
    assert_eq!(stage.store.dropped(), []);
}

/// A probe that never ends is a failed probe, at its deadline; the next ones find the work.
#[tokio::test]
async fn a_hanging_probe_is_followed_by_another() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.store.fail_nth(1, StoreOperation::Probe, StoreFault::Hang);
    let _running = stage.relay().start().unwrap();
    stage.pass(DEADLINE - Duration::from_millis(1)).await;
    assert_eq!(stage.store.started(StoreOperation::Probe), 1, "one probe at a time");
    stage.pass(POLL * 4).await;
    assert!(stage.all_marked());
    assert_eq!(stage.seen.ends(OperationKind::Probe)[0], End::Failed(silent(StoreOperation::Probe)));
}

/// A store that says at its very deadline how an operation ended is heard: what it has done is not taken for a
/// failure.
#[tokio::test]
async fn a_store_that_answers_at_its_deadline_is_heard() {
    for operation in [StoreOperation::Probe, StoreOperation::Claim, StoreOperation::Settle] {
        let stage = Stage::new();
        let ids = stage.write("a", 3);
        stage.store.fail_nth(1, operation, StoreFault::Slow(DEADLINE));
        let _running = stage.relay().start().unwrap();
        stage.until(|| stage.all_marked()).await;
        calm().await;
        assert_eq!(stage.broker.accepted(&tenant("a")), ids, "{operation}: none of them twice");
        assert_eq!(stage.seen.notices(), [Told::Started], "{operation}");
    }
}

/// The same if the process stood still until long after the deadline.
#[tokio::test]
async fn a_store_that_answers_at_its_deadline_is_heard_by_a_relay_that_stood_still() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.store.fail_nth(1, StoreOperation::Settle, StoreFault::Slow(DEADLINE));
    let _running = stage.relay().start().unwrap();
    calm().await;
    stage.clock.advance(DEADLINE * 2);
    stage.until(|| stage.all_marked()).await;
    calm().await;
    assert_eq!(stage.broker.accepted(&tenant("a")), ids, "none of them twice");
    assert_eq!(stage.seen.back_offs("a"), []);
}

/// A claim that comes after its deadline is dropped as a claim, and frees its tenant.
#[tokio::test]
async fn a_late_claim_frees_its_tenant() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.store.fail_nth(1, StoreOperation::Claim, StoreFault::Slow(DEADLINE * 2));
    let _running = stage.relay().start().unwrap();
    stage.pass(DEADLINE * 3).await;
    assert!(stage.all_marked());
    assert_eq!(stage.table.held(), []);
}

/// A settlement that is answered after its deadline may send duplicates; none of them out of order.
#[tokio::test]
async fn a_late_settlement_keeps_the_order() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.store.fail_nth(1, StoreOperation::Settle, StoreFault::Slow(DEADLINE + POLL * 2));
    let _running = stage.relay().start().unwrap();
    stage.pass(DEADLINE * 2).await;
    assert!(stage.all_marked());
    stage.broker.assert_in_order();
    assert!(stage.broker.accepted(&tenant("a")).starts_with(&ids));
}

/// A store that panics is a store that failed: the tenant backs off and recovers, the probe goes on.
#[tokio::test]
async fn a_panicking_store_is_a_failed_one() {
    let operations = [StoreOperation::Probe, StoreOperation::Claim, StoreOperation::Settle];
    for operation in operations {
        let stage = Stage::new();
        stage.write("a", 1);
        stage.store.fail_nth(1, operation, StoreFault::Panic);
        let _running = stage.relay().start().unwrap();
        stage.until(|| stage.all_marked()).await;
        stage.seen.assert_balanced();
        assert_eq!(stage.table.held(), []);
    }
}
