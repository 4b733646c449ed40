//! A batch publisher: slices in order, the accepted prefix, and what it may not say.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::{
    BatchOutcome, BatchPublisher, ConfigProblem, Delivery, MessageId, OperationKind, PublishError,
    Publishing, RefusalCause, RefusalClass, Relay, Slices, StoreOperation, async_trait,
};
use outbox_testkit::{PublishFault, When};

use crate::outlets::{Ordered, Slices as OneByOne};
use crate::seen::End;
use crate::stage::{Stage, calm, config, message, tenant};

type Seen = Arc<Mutex<Vec<Vec<MessageId>>>>;

fn relay_of(stage: &Stage, publisher: impl BatchPublisher, slices: Slices) -> Relay {
    stage.relay_of(config(), Publishing::in_slices(publisher, slices))
}

fn relay(stage: &Stage, bounds: Slices) -> (Relay, Seen) {
    let slices = OneByOne::of(stage.recorder.clone());
    let seen = Arc::clone(&slices.seen);
    (relay_of(stage, slices, bounds), seen)
}

/// Slices have at most so many messages and bytes, at least one message, and are in order; the batch is settled
/// once, and each message has one observation.
#[tokio::test]
async fn slices_are_bounded_in_rows_and_bytes() {
    for (rows, bytes, lengths) in [(10, 1 << 20, &[10, 10, 10][..]), (1_000, 70, &[3; 10]), (3, 1, &[1; 30])]
    {
        let stage = Stage::new();
        let ids = stage.write("a", 30);
        let (relay, seen) = relay(&stage, Slices::default().with_max_messages(rows).with_max_bytes(bytes));
        let _running = relay.start().unwrap();
        stage.until(|| stage.all_marked()).await;
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), lengths, "22 bytes each");
        assert_eq!(seen.concat(), ids);
        assert_eq!(stage.seen.ends(OperationKind::Publish), vec![End::Accepted; 30]);
        assert_eq!(stage.store.started(StoreOperation::Settle), 1);
        stage.seen.assert_balanced();
    }
}

/// Headers count for a slice as payloads do.
#[tokio::test]
async fn a_slice_is_bounded_by_what_its_headers_have() {
    let stage = Stage::new();
    let large = || message("a").with_header("h", "x".repeat(1_000));
    stage.table.append_all((0..4).map(|_| large()));
    let (relay, seen) = relay(&stage, Slices::default().with_max_bytes(2_500));
    let _running = relay.start().unwrap();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(seen.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
}

/// S18: a message in the middle of a slice is refused: those before it are marked, it alone has a failed attempt,
/// and its neighbours are neither lost nor charged.
#[tokio::test]
async fn a_refusal_within_a_slice_marks_the_prefix_and_charges_nobody_else() {
    let stage = Stage::new();
    let ids = stage.write("a", 5);
    stage.publisher.fail_times(2, When::Message(ids[1]), PublishFault::Refuse(RefusalClass::Rejected));
    let (relay, _) = relay(&stage, Slices::default());
    let _running = relay.start().unwrap();
    calm().await;
    assert_eq!(stage.marked("a"), ids[..1]);
    let refused = End::Refused(RefusalCause::Publisher(RefusalClass::Rejected), "refused, on purpose".into());
    let ends = [End::Accepted, refused, End::Abandoned, End::Abandoned, End::Abandoned];
    assert_eq!(stage.seen.ends(OperationKind::Publish), ends);
    stage.until(|| stage.all_marked()).await;
    let attempts: Vec<_> = stage.recorder.deliveries().into_iter().map(|d| (d.id, d.attempt)).collect();
    let expected =
        [(ids[0], 1), (ids[1], 1), (ids[1], 2), (ids[1], 3), (ids[2], 1), (ids[3], 1), (ids[4], 1)];
    assert_eq!(attempts, expected);
    stage.broker.assert_in_order();
    stage.broker.assert_no_duplicates();
    stage.seen.assert_balanced();
}

/// A panic, a deadline, or more accepted than were given: nothing of the slice is known to be accepted.
#[tokio::test]
async fn where_the_slices_end_is_unknown_nothing_of_it_is_marked() {
    for fault in [PublishFault::PanicInPoll, PublishFault::PanicEagerly, PublishFault::Hang] {
        let stage = Stage::new();
        let ids = stage.write("a", 6);
        stage.publisher.fail_times(1, When::Message(ids[4]), fault.clone());
        let (relay, _) = relay(&stage, Slices::default().with_max_messages(3));
        let _running = relay.start().unwrap();
        stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
        assert_eq!(stage.marked("a"), ids[..3], "{fault:?}: the slice before it");
        stage.until(|| stage.all_marked()).await;
        assert_eq!(stage.broker.accepted(&tenant("a")), [&ids[..4], &ids[3..]].concat(), "{fault:?}");
        stage.broker.assert_in_order();
        stage.seen.assert_balanced();
    }
}

/// Answers a number, and keeps what it says.
struct Says(usize, bool);

#[async_trait]
impl BatchPublisher for Says {
    async fn publish_batch(&self, deliveries: &[Delivery<'_>]) -> BatchOutcome {
        if self.1 {
            BatchOutcome::prefix(self.0, PublishError::refused("no"))
        } else {
            BatchOutcome::all(&deliveries[..self.0])
        }
    }
}

/// A prefix that cannot be is a refusal of all; a short one without a reason is one of the next message.
#[tokio::test]
async fn an_answer_that_cannot_be_counts_as_a_refusal() {
    for (says, marked, reason) in [
        (Says(7, true), 0, "refused: the publisher says that 7 of 3 messages were accepted"),
        (Says(2, false), 2, "refused: 2 of 3 messages were accepted"),
        (Says(2, true), 2, "refused: no"),
    ] {
        let stage = Stage::new();
        let ids = stage.write("a", 3);
        let _running = relay_of(&stage, says, Slices::default()).start().unwrap();
        stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
        assert_eq!(
            (stage.marked("a"), stage.seen.last_reason().1.as_str()),
            (ids[..marked].to_vec(), reason)
        );
    }
}

/// A stop and a verification come between slices; past the stop's deadline the slice is dropped and stays pending.
#[tokio::test]
async fn a_stop_waits_for_the_slice_and_drops_it_at_its_deadline() {
    for (fault, marked) in [(PublishFault::Slow(Duration::from_secs(2)), 6), (PublishFault::Hang, 3)] {
        let stage = Stage::new();
        let ids = stage.write("a", 9);
        stage.publisher.fail_times(1, When::Message(ids[4]), fault);
        let running = relay(&stage, Slices::default().with_max_messages(3)).0.start().unwrap();
        calm().await;
        let stopped = tokio::spawn(running.stop());
        stage.pass(Duration::from_secs(10)).await;
        assert!(stopped.is_finished());
        assert_eq!(stage.marked("a"), ids[..marked]);
        assert!(!stage.tried().contains(&ids[6]), "a slice is begun after the stop");
        stage.seen.assert_balanced();
    }
}

/// Nothing in flight, or nothing in a slice, is refused when the relay is built.
#[test]
fn publishing_nothing_at_once_is_refused() {
    let stage = Stage::new();
    let (recorder, nothing) = (stage.recorder.clone(), Slices::default().with_max_messages(0));
    let publishing = [
        (Publishing::by_subject(recorder.clone(), 0), "in_flight"),
        (Publishing::pipelined(Ordered(recorder), 0), "in_flight"),
        (Publishing::in_slices(Says(0, true), nothing), "max_messages"),
        (Publishing::in_slices(Says(0, true), Slices::default().with_max_bytes(0)), "max_bytes"),
    ];
    for (publishing, field) in publishing {
        let refused = stage.builder(config(), publishing).build().unwrap_err();
        assert_eq!(refused.problems(), [ConfigProblem::Zero { field }]);
    }
}
