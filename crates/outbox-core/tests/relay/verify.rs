//! A holder that lost its session notices between two messages.

use std::time::Duration;

use outbox_core::{OperationKind, StoreOperation};
use outbox_testkit::{PublishFault, StoreFault, When};

use crate::seen::End;
use crate::stage::{Stage, config, tenant};

fn patient() -> outbox_core::RelayConfigBuilder {
    config().max_batch_time(Duration::from_secs(600))
}

/// While it publishes, the relay asks at least every second whether its claim still lives.
#[tokio::test]
async fn a_claim_is_verified_between_messages_at_least_every_second() {
    for (millis, messages, least) in [(400, 30, 9), (1_000, 10, 9), (5_000, 5, 4)] {
        let stage = Stage::new();
        stage.write("a", messages);
        stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(millis)));
        let _running = stage.relay_with(patient()).start().unwrap();
        stage.until(|| stage.all_marked()).await;
        assert_eq!(stage.store.started(StoreOperation::Claim), 1, "one batch");
        let verified = stage.store.started(StoreOperation::Verify);
        assert!((least..messages).contains(&verified), "{verified} times with {millis} ms a message");
        let seen = stage.seen.ends(OperationKind::Verify);
        assert_eq!(seen, vec![End::Verified; verified], "observers see each of them");
    }
}

/// A batch that is over within a second costs no verification.
#[tokio::test]
async fn a_quick_batch_is_not_verified() {
    let stage = Stage::new();
    stage.write("a", 30);
    let _running = stage.relay().start().unwrap();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.store.started(StoreOperation::Verify), 0);
}

/// A holder whose session was ended sends no more than the message that it was in, and marks nothing.
#[tokio::test]
async fn a_lost_session_stops_after_the_message_in_flight_and_marks_nothing() {
    let stage = Stage::new();
    let ids = stage.write("a", 5);
    stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_secs(2)));
    let _running = stage.relay_with(patient()).start().unwrap();
    stage.pass(Duration::from_secs(3)).await;
    assert_eq!((stage.tried(), stage.table.kill_sessions()), (ids[..2].to_vec(), 1));
    stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
    assert_eq!((stage.tried(), stage.marked("a")), (ids[..2].to_vec(), vec![]));
    let seen = stage.seen.ends(OperationKind::Verify);
    assert!(matches!(seen.last(), Some(End::Failed(_))), "observers see that it was lost: {seen:?}");
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), [&ids[..2], &ids].concat());
    stage.broker.assert_in_order();
}

/// A session lost during the last message is noticed by the settlement: nothing is marked.
#[tokio::test]
async fn a_session_lost_in_the_last_message_marks_nothing() {
    let stage = Stage::new();
    let ids = stage.write("a", 1);
    stage.publisher.fail_times(1, When::Every, PublishFault::Slow(Duration::from_millis(500)));
    let _running = stage.relay().start().unwrap();
    stage.pass(Duration::from_millis(100)).await;
    stage.table.kill_sessions();
    stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
    assert_eq!(stage.marked("a"), []);
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), [ids[0], ids[0]]);
}

/// A verification that fails for another reason stops the holder too: it cannot know.
#[tokio::test]
async fn a_failed_verification_stops_the_batch() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_secs(1)));
    stage.store.fail_nth(1, StoreOperation::Verify, StoreFault::Fail);
    let _running = stage.relay_with(patient()).start().unwrap();
    stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
    assert_eq!((stage.tried(), stage.marked("a")), (ids[..1].to_vec(), vec![]));
    assert_eq!(stage.table.held(), []);
}
