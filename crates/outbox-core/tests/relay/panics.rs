//! A publisher that panics, in every way, and observers that do.

use std::time::Duration;

use outbox_core::{
    Accepted, Delivery, Headers, Notice, Observation, Observer, Operation, OperationKind, Outcome,
    PublishError, Publisher, RefusalCause, async_trait,
};
use outbox_testkit::{PublishFault, When};

use crate::seen::End;
use crate::stage::{POLL, Stage, config, tenant};

/// S45: a panic on the third message, in the poll or before there is a future, is a refusal of that message.
#[tokio::test]
async fn a_panic_is_a_refusal_that_carries_its_message() {
    for (fault, text) in [
        (PublishFault::PanicInPoll, "the publisher panicked: the publisher panics in its poll"),
        (PublishFault::PanicEagerly, "the publisher panicked: the publisher panics before there is a future"),
    ] {
        let stage = Stage::new();
        let ids = stage.write("a", 5);
        stage.publisher.fail_times(1, When::Message(ids[2]), fault);
        let relay = stage.builder(config(), stage.publisher.clone()).observer(stage.seen.clone()).build();
        let _running = relay.unwrap().start().unwrap();
        stage.pass(POLL).await;
        assert_eq!(stage.marked("a"), ids[..2]);
        let refused = End::Refused(RefusalCause::Panic, text.to_owned());
        assert_eq!(stage.seen.ends(OperationKind::Publish)[2], refused);
        stage.until(|| stage.all_marked()).await;
        assert_eq!(stage.broker.accepted(&tenant("a")), ids);
    }
}

/// A panic in the drop of a publisher's future, after it was accepted: accepted stands, nothing goes out twice.
#[tokio::test]
async fn a_panic_in_the_futures_drop_leaves_the_answer_as_it_was() {
    let stage = Stage::new();
    let ids = stage.write("a", 5);
    stage.publisher.fail(When::Every, PublishFault::PanicInDrop);
    let relay = stage.builder(config(), stage.publisher.clone()).build().unwrap();
    let _running = relay.start().unwrap();
    stage.pass(POLL).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), ids);
    assert!(stage.all_marked());
}

/// S45: a hundred cycles of panics on every message: the neighbour flows, the tenant waits, health tells.
#[tokio::test]
async fn a_hundred_panics_in_a_row_harm_nobody_else() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Tenant(tenant("a")), PublishFault::PanicInPoll);
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    stage.until(|| stage.seen.back_offs("a").len() >= 100).await;
    let ids = stage.write("b", 3);
    stage.pass(POLL).await;
    assert_eq!((stage.marked("b"), stage.table.held()), (ids, vec![]));
    let report = relay.health().check().await;
    assert!(report.to_string().starts_with("a is ") && !report.is_healthy(), "{report}");
}

/// Panics with a payload that is no text, and that panics once more when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(7);
    }
}

/// Panics so on the first two publishes, and in the drop of the third one's future.
struct Bomber(std::sync::atomic::AtomicU32);

#[async_trait]
impl Publisher for Bomber {
    async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 | 1 => std::panic::panic_any(Bomb),
            _ => Ok(Accepted),
        }
    }
}

/// A payload that is no text, and whose own drop panics, is a refusal like any other.
#[tokio::test]
async fn a_hostile_panic_payload_is_a_refusal_like_any_other() {
    let stage = Stage::new();
    stage.write("a", 3);
    let relay = stage.builder(config(), Bomber(0.into())).observer(stage.seen.clone()).build().unwrap();
    let _running = relay.start().unwrap();
    stage.until(|| stage.all_marked()).await;
    let text = "the publisher panicked: a panic without a message".to_owned();
    let ends = stage.seen.ends(OperationKind::Publish);
    assert_eq!(
        ends[..2],
        [End::Refused(RefusalCause::Panic, text.clone()), End::Refused(RefusalCause::Panic, text)]
    );
    assert_eq!(ends.len(), 5);
}

/// An observer that panics at one place, always.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hostile {
    Start,
    Propagate,
    EnterBefore,
    EnterAfter,
    End,
    Notice,
}

impl Observer for Hostile {
    fn start(&self, _: &Operation<'_>) -> Option<Box<dyn Observation>> {
        assert_ne!(*self, Self::Start);
        Some(Box::new(*self))
    }

    fn notice(&self, _: &Notice<'_>) {
        assert_ne!(*self, Self::Notice);
    }
}

impl Observation for Hostile {
    fn propagate(&mut self, _: &mut Headers) {
        assert_ne!(*self, Self::Propagate);
    }

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        assert_ne!(*self, Self::EnterBefore);
        poll();
        assert_ne!(*self, Self::EnterAfter);
    }

    fn end(self: Box<Self>, _: &Outcome<'_>) {
        assert_ne!(*self, Self::End);
    }
}

/// What the publisher answered stands, wherever a metrics hook fails; its panics are counted.
#[tokio::test]
async fn a_panicking_observer_changes_nothing() {
    use Hostile::{End, EnterAfter, EnterBefore, Notice, Propagate, Start};
    for hostile in [Start, Propagate, EnterBefore, EnterAfter, End, Notice] {
        let stage = Stage::new();
        let ids = stage.write("a", 10);
        stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_millis(1)));
        let builder = stage.builder(config(), stage.recorder.clone());
        let relay = builder.observer(hostile).observer(stage.seen.clone()).build().unwrap();
        let running = relay.start().unwrap();
        stage.pass(POLL).await;
        assert!(stage.all_marked(), "{hostile:?}");
        running.stop().await.unwrap();
        assert_eq!(stage.broker.accepted(&tenant("a")), ids, "{hostile:?}");
        assert!(relay.observer_panics() > 0, "{hostile:?}");
        stage.seen.assert_balanced();
    }
}
