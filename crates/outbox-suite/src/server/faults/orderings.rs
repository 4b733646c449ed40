//! The orderings by choice, on a real table, with two replicas and a publisher that refuses now and then.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Accepted, BatchOutcome, BatchPublisher, Delivery, MessageId, NewMessage, OrderedPublisher, PublishError,
    Publisher, Publishing, RefusalClass, Relay, RelayHandle, Slices, SystemClock, async_trait,
};
use outbox_testkit::{FaultyPublisher, PublishFault, Recorder, When};

use crate::server::{Driver, ServerDatabase, Stage, quick, tenant};

/// A publisher that keeps order by itself, and one that takes slices.
#[derive(Clone)]
struct Flaky(Recorder);

#[async_trait]
impl Publisher for Flaky {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.0.publish(delivery).await
    }
}

impl OrderedPublisher for Flaky {}

#[async_trait]
impl BatchPublisher for Flaky {
    async fn publish_batch(&self, deliveries: &[Delivery<'_>]) -> BatchOutcome {
        for (accepted, delivery) in deliveries.iter().enumerate() {
            if let Err(error) = self.0.publish(delivery).await {
                return BatchOutcome::prefix(accepted, error);
            }
        }
        BatchOutcome::all(deliveries)
    }
}

async fn append<D: ServerDatabase>(stage: &Stage<D>, messages: &[NewMessage]) -> Vec<MessageId> {
    stage.database.append(&stage.table, messages).await.into_iter().map(MessageId::new).collect()
}

/// A tenant with 150 rows of one subject at its head, more than two first batches, and 240 rows of twelve others.
async fn write(stage: &Stage<impl ServerDatabase>) -> (Vec<MessageId>, Vec<MessageId>) {
    let about = |subject: String| NewMessage::new(tenant("acme"), "kind", subject, "{}");
    let stuck: Vec<_> = (0..150).map(|_| about("stuck".to_owned())).collect();
    let others: Vec<_> = (0..240).map(|nth| about(format!("subject-{}", nth % 12))).collect();
    let stuck = append(stage, &stuck).await;
    let others = append(stage, &others).await;
    (stuck, others)
}

/// Refuses every ninth publish of the first ninety.
fn flaky(publisher: Recorder) -> FaultyPublisher {
    let faulty = FaultyPublisher::new(publisher, Arc::new(SystemClock::new()));
    for nth in 1..=10 {
        faulty.fail_times(1, When::Nth(nth * 9), PublishFault::Refuse(RefusalClass::Unavailable));
    }
    faulty
}

fn replicas(stage: &Stage<impl ServerDatabase>, publishing: &Publishing) -> Vec<RelayHandle> {
    let start = |_| {
        let relay = Relay::builder(stage.store(4), publishing.clone(), quick().build().unwrap());
        relay.build().unwrap().start().unwrap()
    };
    (0..2).map(start).collect()
}

async fn stop(replicas: Vec<RelayHandle>) {
    for replica in replicas {
        replica.stop().await.unwrap();
    }
}

/// A subject that is refused, with more than a full batch of rows, keeps none of the others; within each subject the
/// order holds, and nothing goes out twice.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn subjects_keep_their_order_and_a_refused_one_keeps_nobody_else<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let stage = Stage::new(driver).await;
    let (stuck, others) = write(&stage).await;
    let broker = Recorder::new().by_subject();
    let faulty = flaky(broker.clone());
    faulty.fail(When::Message(stuck[0]), PublishFault::Refuse(RefusalClass::Rejected));
    let running = replicas(&stage, &Publishing::by_subject(faulty.clone(), 8));
    let left = "SELECT count(*) = 150 FROM outbox_message WHERE published_at IS NULL";
    stage.database.wait_until(left).await;
    let mut accepted = broker.accepted(&tenant("acme"));
    accepted.sort_unstable();
    assert_eq!(accepted, others, "exactly the others are out");
    faulty.heal();
    stage.wait_until_published().await;
    stop(running).await;
    broker.assert_in_order();
    broker.assert_no_duplicates();
    assert_eq!(broker.accepted(&tenant("acme")).len(), stuck.len() + others.len());
    stage.end().await;
}

/// Slices keep the tenant's order, and a refusal within one repeats nothing.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn slices_keep_the_tenants_order_and_repeat_nothing<D: ServerDatabase>(driver: Driver<D>) {
    let stage = Stage::new(driver).await;
    let (stuck, others) = write(&stage).await;
    let broker = Recorder::new();
    let publisher = Flaky(Recorder::around(flaky(broker.clone())));
    let slices = Slices::default().with_max_messages(20);
    let running = replicas(&stage, &Publishing::in_slices(publisher, slices));
    stage.wait_until_published().await;
    stop(running).await;
    assert_eq!(broker.accepted(&tenant("acme")), [stuck, others].concat());
    broker.assert_in_order();
    stage.end().await;
}

/// A pipeline loses nothing, and what it sends again it sends in order.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_pipeline_loses_nothing_and_ends_in_order<D: ServerDatabase>(driver: Driver<D>) {
    let stage = Stage::new(driver).await;
    let (stuck, others) = write(&stage).await;
    let broker = Recorder::new().unordered();
    let faulty = flaky(broker.clone());
    faulty.fail_times(20, When::Every, PublishFault::Slow(Duration::from_millis(2)));
    let publisher = Flaky(Recorder::around(faulty).unordered());
    let running = replicas(&stage, &Publishing::pipelined(publisher, 8));
    stage.wait_until_published().await;
    stop(running).await;
    let mut accepted = broker.accepted(&tenant("acme"));
    assert_eq!(accepted.last(), others.last());
    accepted.sort_unstable();
    accepted.dedup();
    assert_eq!(accepted, [stuck, others].concat());
    stage.end().await;
}
