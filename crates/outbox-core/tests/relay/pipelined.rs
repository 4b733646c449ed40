//! Pipelined: several messages on their way over one ordered connection, and a prefix that is marked.

use std::time::Duration;

use outbox_core::{
    Accepted, Delivery, MessageId, OrderedPublisher, PublishError, Publisher, Publishing, RefusalClass,
    Relay, RelayConfigBuilder, StoreOperation, async_trait,
};
use outbox_memory::MemoryStore;
use outbox_testkit::{PublishFault, When};
use tokio::sync::{mpsc, oneshot};

use crate::outlets::Ordered;
use crate::stage::{Stage, calm, config, tenant};

fn relay(stage: &Stage, config: RelayConfigBuilder) -> Relay {
    stage.relay_of(config, Publishing::pipelined(Ordered(stage.recorder.clone()), 4))
}

/// Messages are begun in id order, so many at once and no more, whatever order they are answered in.
#[tokio::test]
async fn messages_are_begun_by_id_and_so_many_at_once() {
    let stage = Stage::unordered();
    let ids = stage.write("a", 10);
    for (place, id) in ids.iter().enumerate() {
        let millis = [40, 10, 30, 20][place % 4];
        stage.publisher.fail(When::Message(*id), PublishFault::Slow(Duration::from_millis(millis)));
    }
    let _running = relay(&stage, config()).start().unwrap();
    calm().await;
    assert_eq!(stage.tried(), ids[..4]);
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.tried(), ids);
    assert_eq!(stage.recorder.most_in_flight(), 4);
    assert_eq!(stage.store.started(StoreOperation::Settle), 1);
}

/// After a failure nothing is begun, what is on its way is waited for, the prefix is marked, and what was accepted
/// beyond it goes out again behind the message that failed.
#[tokio::test]
async fn a_failure_marks_the_prefix_and_what_was_accepted_beyond_it_comes_again() {
    for fault in [
        PublishFault::Refuse(RefusalClass::Refused),
        PublishFault::PanicInPoll,
        PublishFault::LoseAcknowledgement,
        PublishFault::Hang,
    ] {
        let stage = Stage::unordered();
        let ids = stage.write("a", 8);
        stage.publisher.fail_times(1, When::Message(ids[2]), fault.clone());
        for id in [ids[1], ids[3], ids[4]] {
            stage.publisher.fail_times(1, When::Message(id), PublishFault::Slow(Duration::from_millis(100)));
        }
        let config = config().publish_timeout(Duration::from_secs(1));
        let _running = relay(&stage, config).start().unwrap();
        stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
        assert_eq!(stage.marked("a"), ids[..2], "{fault:?}");
        // While the hanging one was waited for, the others went on; behind a refusal nothing is begun.
        let begun = if fault == PublishFault::Hang { 8 } else { 3 };
        assert_eq!(stage.tried(), ids[..begun], "{fault:?}");
        stage.publisher.heal();
        stage.until(|| stage.all_marked()).await;
        let mut accepted = stage.broker.accepted(&tenant("a"));
        assert_eq!(accepted.split_off(accepted.len() - 6), ids[2..], "{fault:?}: again, in order");
    }
}

/// A message that is refused marks exactly those before it, though later ones were accepted.
#[tokio::test]
async fn exactly_the_accepted_prefix_is_marked() {
    let stage = Stage::unordered();
    let ids = stage.write("a", 8);
    stage.publisher.fail_times(1, When::Message(ids[2]), PublishFault::Refuse(RefusalClass::Refused));
    for id in [ids[0], ids[1]] {
        stage.publisher.fail_times(1, When::Message(id), PublishFault::Slow(Duration::from_millis(100)));
    }
    let _running = relay(&stage, config()).start().unwrap();
    stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
    assert_eq!((stage.tried(), stage.marked("a")), (ids[..3].to_vec(), ids[..2].to_vec()));
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), ids);
}

/// A publisher as a client of a broker is: it hands each message to the task that owns the connection, through a
/// channel with room, and waits for the acknowledgement.
struct Wired(mpsc::Sender<(MessageId, oneshot::Sender<()>)>);

#[async_trait]
impl Publisher for Wired {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let (acknowledge, acknowledged) = oneshot::channel();
        let lost = || PublishError::unavailable("the connection is gone");
        self.0.send((delivery.message.id, acknowledge)).await.map_err(|_| lost())?;
        acknowledged.await.map_err(|_| lost())?;
        Ok(Accepted)
    }
}

impl OrderedPublisher for Wired {}

/// Tokio makes whoever does much in one go wait, though there is room: such a message would go out behind later
/// ones. However many are on their way, the first poll of each puts it on the connection.
#[tokio::test]
async fn more_than_tokios_budget_at_once_stay_in_order() {
    const MANY: usize = 1_000;
    let table = MemoryStore::new();
    let ids = table.append_all((0..MANY).map(|_| crate::stage::message("a")));
    let (wire, mut connection) = mpsc::channel(MANY);
    let many = u32::try_from(MANY).unwrap();
    let config = config().initial_batch(many).max_batch(many).build().unwrap();
    let relay = Relay::builder(table, Publishing::pipelined(Wired(wire), MANY), config).build().unwrap();
    let _running = relay.start().unwrap();
    let mut sent = Vec::new();
    while sent.len() < MANY {
        let (id, acknowledge) = connection.recv().await.unwrap();
        sent.push(id);
        acknowledge.send(()).unwrap();
    }
    assert_eq!(sent, ids);
}
