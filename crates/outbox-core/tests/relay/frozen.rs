//! A relay that stands still while an answer of the store is on its way: how long a proof of its claim counts.

use std::time::Duration;

use outbox_core::{OperationKind, Publishing, Relay, StoreOperation};
use outbox_testkit::{PublishFault, Recorder, StoreFault, When};

use crate::outlets::{Ordered, Slices};
use crate::seen::End;
use crate::stage::{Stage, calm, config, tenant};

const SECOND: Duration = Duration::from_secs(1);

/// Longer than a proof of the claim counts.
const LONG: Duration = Duration::from_secs(3);

/// In which shape a batch is published.
#[derive(Debug, Clone, Copy)]
enum Shape {
    InOrder,
    BySubject,
    Pipelined,
    InSlices,
}

const SHAPES: [Shape; 4] = [Shape::InOrder, Shape::BySubject, Shape::Pipelined, Shape::InSlices];

/// The relay that stands still, one message at a time.
fn relay(stage: &Stage, shape: Shape) -> Relay {
    let publisher = stage.recorder.clone();
    let publishing = match shape {
        Shape::InOrder => Publishing::in_order(publisher),
        Shape::BySubject => Publishing::by_subject(publisher, 1),
        Shape::Pipelined => Publishing::pipelined(Ordered(publisher), 1),
        Shape::InSlices => {
            let bounds = outbox_core::Slices::default().with_max_messages(1);
            Publishing::in_slices(Slices::of(publisher), bounds)
        }
    };
    stage.relay_of(config().max_batch_time(Duration::from_secs(600)), publishing)
}

/// While the first relay stands still it loses its session, and another publishes and marks everything.
async fn another_publishes(stage: &Stage) {
    assert_eq!(stage.table.kill_sessions(), 1, "the first relay holds the tenant");
    let other = stage.builder(config(), Recorder::new()).build().unwrap();
    let running = other.start().unwrap();
    calm().await;
    assert!(stage.all_marked());
    running.stop().await.unwrap();
}

/// The rows of a claim are on their way, and the relay stands still for longer than a proof of the claim counts:
/// it publishes nothing before it has asked once more.
#[tokio::test]
async fn a_relay_frozen_while_its_claim_is_answered_publishes_nothing_without_the_claim() {
    for shape in SHAPES {
        let stage = Stage::new();
        stage.write("a", 5);
        stage.store.fail_nth(1, StoreOperation::Claim, StoreFault::AnswerLate(LONG));
        let _running = relay(&stage, shape).start().unwrap();
        calm().await;
        another_publishes(&stage).await;
        stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
        assert_eq!(stage.tried(), [], "{shape:?}");
    }
}

/// The same while a verification is answered: nothing is begun beyond the message that was in hand before it.
#[tokio::test]
async fn a_relay_frozen_while_a_verification_is_answered_begins_nothing_without_the_claim() {
    for shape in SHAPES {
        let stage = Stage::new();
        let ids = stage.write("a", 5);
        stage.publisher.fail(When::Every, PublishFault::Slow(SECOND));
        stage.store.fail_nth(1, StoreOperation::Verify, StoreFault::AnswerLate(LONG));
        let _running = relay(&stage, shape).start().unwrap();
        stage.pass(SECOND).await;
        assert_eq!(stage.store.started(StoreOperation::Verify), 1, "{shape:?}");
        another_publishes(&stage).await;
        stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
        assert_eq!(stage.tried(), ids[..1], "{shape:?}");
    }
}

/// A claim that is slow and lives is no livelock: it is verified once, and everything goes out.
#[tokio::test]
async fn a_slow_claim_is_verified_once_and_everything_goes_out() {
    for shape in SHAPES {
        let stage = Stage::new();
        let ids = stage.write("a", 5);
        stage.store.fail(StoreOperation::Claim, StoreFault::AnswerLate(LONG));
        let _running = relay(&stage, shape).start().unwrap();
        stage.until(|| stage.all_marked()).await;
        assert_eq!(stage.broker.accepted(&tenant("a")), ids, "{shape:?}");
        assert_eq!(stage.store.started(StoreOperation::Claim), 1, "{shape:?}");
        assert_eq!(stage.seen.ends(OperationKind::Verify), [End::Verified], "{shape:?}");
        assert_eq!(stage.seen.back_offs("a"), []);
    }
}

/// A verification that takes a second or more ends the turn, though the claim lives: what was accepted is marked,
/// the rest stays pending and goes out after a back-off, once.
#[tokio::test]
async fn a_verification_that_takes_too_long_ends_the_turn_and_what_was_accepted_is_marked() {
    for shape in SHAPES {
        let stage = Stage::new();
        let ids = stage.write("a", 4);
        stage.publisher.fail(When::Every, PublishFault::Slow(SECOND / 2));
        stage.store.fail_nth(1, StoreOperation::Verify, StoreFault::AnswerLate(SECOND));
        let _running = relay(&stage, shape).start().unwrap();
        stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
        assert_eq!((stage.tried(), stage.marked("a")), (ids[..2].to_vec(), ids[..2].to_vec()), "{shape:?}");
        let (_, reason) = stage.seen.last_reason();
        assert!(reason.starts_with("verify failed: the answer came after 1000 ms"), "{reason}");
        stage.until(|| stage.all_marked()).await;
        assert_eq!(stage.broker.accepted(&tenant("a")), ids, "{shape:?}: none of them twice");
    }
}

/// A health check that stood still while its answer came does not call that answer the present.
#[tokio::test]
async fn a_health_check_that_stood_still_is_not_green() {
    let stage = Stage::new();
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    calm().await;
    stage.store.fail(StoreOperation::Probe, StoreFault::Slow(SECOND));
    let health = relay.health();
    let check = tokio::spawn(async move { health.check().await });
    calm().await;
    stage.clock.advance(SECOND * 6);
    assert_eq!(check.await.unwrap().to_string(), "the database did not answer within 5000 ms");
}
