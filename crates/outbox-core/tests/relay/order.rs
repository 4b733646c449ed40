//! What is published in which order, and what is marked.

use std::time::Duration;

use outbox_core::{RefusalClass, StoreOperation};
use outbox_testkit::{PublishFault, When};

use crate::stage::{POLL, Stage, calm, message, tenant};

const REFUSE: PublishFault = PublishFault::Refuse(RefusalClass::Refused);

/// A tenant's messages go out one by one, in id order, once each, and are marked in one settlement.
#[tokio::test]
async fn a_batch_is_published_in_id_order_and_marked() {
    let stage = Stage::new();
    let ids = stage.write("a", 20);
    let _running = stage.relay().start().unwrap();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.recorder.accepted(&tenant("a")), ids);
    assert_eq!(stage.tried(), ids);
    assert_eq!(stage.store.started(StoreOperation::Settle), 1);
    stage.recorder.assert_in_order();
}

/// A refusal ends the batch: what was accepted before it is marked, and nothing behind it is published.
#[tokio::test]
async fn a_refusal_marks_the_accepted_prefix_and_leaves_the_rest() {
    let stage = Stage::new();
    let ids = stage.write("a", 5);
    stage.publisher.fail(When::Message(ids[2]), REFUSE);
    let _running = stage.relay().start().unwrap();
    stage.pass(POLL * 60).await;
    assert_eq!(stage.marked("a"), ids[..2]);
    assert!(!stage.tried().contains(&ids[3]), "{:?}", stage.tried());
    stage.publisher.heal();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.recorder.accepted(&tenant("a")), ids);
    stage.recorder.assert_in_order();
}

/// S08: no replica publishes a later message while an earlier one is in its back-off.
#[tokio::test]
async fn no_replica_overtakes_a_message_that_backs_off() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.publisher.fail_times(6, When::Message(ids[0]), REFUSE);
    let _replicas = [stage.relay().start().unwrap(), stage.relay().start().unwrap()];
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.tried(), [[ids[0]; 6].as_slice(), &ids].concat());
}

/// S01: the lower id that commits later is published late, never skipped; a rolled back one holds nothing up.
#[tokio::test]
async fn a_late_commit_is_published_and_a_rollback_holds_nothing_up() {
    let stage = Stage::new();
    let _running = stage.relay().start().unwrap();
    let (mut late, mut never) = (stage.table.begin(), stage.table.begin());
    let late_id = late.append(message("a"));
    never.append(message("a"));
    let ids = stage.write("a", 2);
    stage.pass(POLL * 5).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), ids, "open transactions hold nothing up");
    late.commit();
    never.rollback();
    stage.pass(POLL * 2).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), [ids[0], ids[1], late_id]);
    assert!(stage.all_marked());
    stage.broker.assert_no_duplicates();
}

/// S06: what a crashed process left behind goes out before what is written, and waked for, after the restart.
#[tokio::test]
async fn old_messages_go_out_before_new_ones_whatever_wakes_the_relay() {
    let stage = Stage::new();
    let old = stage.write("a", 40);
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    let new = stage.write("a", 1);
    relay.wake();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), [old, new].concat());
}

/// S07: the order is the id's, whatever the messages' times are and wherever the clock goes.
#[tokio::test]
async fn equal_and_falling_times_change_no_order() {
    let stage = Stage::new();
    let start = outbox_core::Clock::now(&stage.clock);
    let mut transaction = stage.table.begin();
    for nth in 0..50_u64 {
        if nth == 25 {
            stage.clock.set_date(outbox_core::Timestamp::from_micros(start.as_micros() - 5_000_000));
        }
        transaction.append(message("a"));
    }
    transaction.commit();
    let _running = stage.relay().start().unwrap();
    stage.until(|| stage.all_marked()).await;
    let accepted = stage.broker.accepted(&tenant("a"));
    assert!(accepted.is_sorted() && accepted.len() == 50, "{accepted:?}");
}

/// S09: a message whose acknowledgement was lost is not marked; it goes out again, and nothing before it.
#[tokio::test]
async fn a_message_without_an_acknowledgement_stays_pending() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.publisher.fail_times(1, When::Message(ids[1]), PublishFault::LoseAcknowledgement);
    let _running = stage.relay().start().unwrap();
    calm().await;
    assert_eq!(stage.marked("a"), ids[..1]);
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), [ids[0], ids[1], ids[1], ids[2]]);
    stage.broker.assert_in_order();
}

/// S15: a publish that takes longer than anything keeps its tenant: the second replica stays out.
#[tokio::test]
async fn a_slow_publish_keeps_its_tenant() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_secs(25)));
    let _replicas = [stage.relay().start().unwrap(), stage.relay().start().unwrap()];
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), ids);
    stage.recorder.assert_in_order();
}
