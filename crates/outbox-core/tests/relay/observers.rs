//! What observers see.

use std::time::Duration;

use outbox_core::{
    Accepted, Delivery, Headers, Notice, Observation, Observer, Operation, OperationKind, Outcome,
    PublishError, Publisher, RefusalClass, StoreOperation, async_trait,
};
use outbox_testkit::{ManualClock, PublishFault, StoreFault, When};

use crate::seen::End;
use crate::stage::{Stage, config, message, tenant};

/// After faults of every sort and a stop, each start has its one end, and the publishes add up.
#[tokio::test]
async fn every_operation_ends_once_and_the_counts_add_up() {
    let mut random = fastrand::Rng::with_seed(11);
    let faults = [
        PublishFault::Refuse(RefusalClass::Refused),
        PublishFault::PanicInPoll,
        PublishFault::Slow(Duration::from_millis(30)),
        PublishFault::LoseAcknowledgement,
        PublishFault::Hang,
    ];
    let stage = Stage::new();
    for nth in 1..400 {
        if random.u8(..4) == 0 {
            stage.publisher.fail(When::Nth(nth), random.choice(&faults).unwrap().clone());
        }
        if random.u8(..8) == 0 {
            let operations = [StoreOperation::Claim, StoreOperation::Settle, StoreOperation::Probe];
            let store_faults = [StoreFault::Fail, StoreFault::Panic, StoreFault::LoseAnswer];
            let fault = random.choice(&store_faults).unwrap().clone();
            stage.store.fail_nth(nth as usize, *random.choice(&operations).unwrap(), fault);
        }
    }
    for name in ["a", "b", "c", "d", "e"] {
        stage.write(name, 30);
    }
    let running = stage.relay_with(config().stop_timeout(Duration::ZERO)).start().unwrap();
    stage.until(|| stage.all_marked()).await;
    stage.publisher.fail(When::Every, PublishFault::Hang);
    stage.write("a", 1);
    let before = stage.seen.starts(OperationKind::Publish);
    stage.until(|| stage.seen.starts(OperationKind::Publish) > before).await;
    running.stop().await.unwrap();

    stage.seen.assert_balanced();
    let ends = stage.seen.ends(OperationKind::Publish);
    let count = |of: fn(&End) -> bool| ends.iter().filter(|end| of(end)).count();
    let accepted = count(|end| matches!(end, End::Accepted));
    let refused = count(|end| matches!(end, End::Refused(..)));
    let abandoned = count(|end| matches!(end, End::Abandoned));
    assert_eq!(accepted + refused + abandoned, stage.seen.starts(OperationKind::Publish));
    assert_eq!(stage.recorder.deliveries().len(), stage.seen.starts(OperationKind::Publish));
    assert_eq!(abandoned, 1);
    let settled = stage.seen.ends(OperationKind::Settle).into_iter();
    let marked: usize = settled.map(|end| if let End::Settled(count) = end { count } else { 0 }).sum();
    assert!(marked <= stage.table.published().len(), "told of more than there is");
    stage.recorder.assert_in_order();
}

/// Takes its time, by the relay's clock, at everything that it is told.
struct Slow(ManualClock);

impl Observer for Slow {
    fn start(&self, _: &Operation<'_>) -> Option<Box<dyn Observation>> {
        self.0.advance(Duration::from_millis(300));
        Some(Box::new(Self(self.0.clone())))
    }

    fn notice(&self, _: &Notice<'_>) {
        self.0.advance(Duration::from_millis(300));
    }
}

impl Observation for Slow {
    fn propagate(&mut self, _: &mut Headers) {
        self.0.advance(Duration::from_millis(300));
    }

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        self.0.advance(Duration::from_millis(300));
        poll();
    }

    fn end(self: Box<Self>, _: &Outcome<'_>) {
        self.0.advance(Duration::from_millis(300));
    }
}

/// A slow observer makes the relay slow and harms nothing: everything is published once, in order, and marked.
#[tokio::test]
async fn a_slow_observer_harms_nothing() {
    let stage = Stage::new();
    for name in ["a", "b", "c"] {
        stage.write(name, 40);
    }
    let relay = stage.builder(config(), stage.publisher.clone()).observer(Slow(stage.clock.clone()));
    let running = relay.build().unwrap().start().unwrap();
    stage.until(|| stage.all_marked()).await;
    running.stop().await.unwrap();
    stage.recorder.assert_in_order();
    stage.recorder.assert_no_duplicates();
    stage.seen.assert_balanced();
}

/// Answers only if the headers are the message's own and what the observer added.
struct NeedsHeaders;

#[async_trait]
impl Publisher for NeedsHeaders {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let expected = [("tenant-header", "kept"), ("traceparent", "added by the observer")];
        let found: Vec<(&str, &str)> = delivery.headers.iter().collect();
        if found == expected && delivery.message.headers.len() == 1 && delivery.source == "memory" {
            Ok(Accepted)
        } else {
            Err(PublishError::rejected(format!("{found:?}")))
        }
    }
}

/// What an observer adds to the headers reaches the publisher beside the message's own; the message is unchanged.
#[tokio::test]
async fn propagated_headers_reach_the_publisher() {
    let stage = Stage::new();
    stage.table.append(message("a").with_header("tenant-header", "kept"));
    let relay = stage.builder(config(), NeedsHeaders).observer(stage.seen.clone()).build().unwrap();
    relay.drain().await.unwrap();
    assert!(stage.all_marked(), "{:?}", stage.seen.notices());
}

/// Without an observer the publisher gets the message's headers as they are.
#[tokio::test]
async fn without_an_observer_the_headers_are_the_messages() {
    struct Same;
    #[async_trait]
    impl Publisher for Same {
        async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
            let mut expected = Headers::new();
            expected.insert("one", "1");
            (*delivery.headers == expected).then_some(Accepted).ok_or(PublishError::rejected("others"))
        }
    }
    let stage = Stage::new();
    stage.table.append(message("a").with_header("one", "1"));
    let report = stage.builder(config(), Same).build().unwrap().drain().await.unwrap();
    assert_eq!((report.published, report.tenants.len()), (1, 1));
    assert!(report.tenants.contains_key(&tenant("a")));
}
