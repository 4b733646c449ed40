//! A publisher that accepts, refuses, panics and hangs as the seed says, one message or a slice at a time.

use std::panic::resume_unwind;
use std::time::Duration;

use outbox_core::{
    Accepted, BatchOutcome, BatchPublisher, Delivery, OrderedPublisher, PublishError, Publisher, async_trait,
};

use crate::gate::Gate;
use crate::ledger::State;
use crate::world::{Behind, Shared, World};

#[derive(Debug, Clone)]
pub(crate) struct WorldPublisher {
    pub(crate) world: Shared,
    pub(crate) replica: usize,
}

/// What the receiver says to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Accepts,
    Unavailable,
    Refuses,
    Rejects,
    Panics,
    Hangs,
}

impl World {
    fn answer(&mut self, id: i64) -> Answer {
        if !self.is_faulty {
            return Answer::Accepts;
        }
        if self.down.publisher {
            return Answer::Unavailable;
        }
        let refusals = &mut self.ledger.message_mut(id).refusals;
        if *refusals > 0 {
            *refusals -= 1;
            return if id % 2 == 0 { Answer::Refuses } else { Answer::Rejects };
        }
        if !self.is_one_of(self.setting.faults.publisher / 2) {
            return Answer::Accepts;
        }
        [Answer::Unavailable, Answer::Refuses, Answer::Panics, Answer::Hangs][self.rng.usize(..4)]
    }
}

/// Messages on their way under a claim. Dropped, nobody knows what became of them.
struct OnTheWay<'a> {
    publisher: &'a WorldPublisher,
    /// The claim, and the messages' places in it.
    places: Option<(usize, Vec<usize>)>,
}

impl<'a> OnTheWay<'a> {
    fn begin(publisher: &'a WorldPublisher, deliveries: &[Delivery<'_>]) -> Self {
        let ids: Vec<i64> = deliveries.iter().map(|delivery| delivery.message.id.get()).collect();
        let places = publisher.world.lock().judge_publish(publisher.replica, &ids);
        Self { publisher, places }
    }

    /// The first `accepted` messages are accepted, and the others are not.
    fn end(mut self, accepted: usize) {
        self.leave(|number| if number < accepted { State::Accepted } else { State::Failed });
    }

    fn leave(&mut self, state: impl Fn(usize) -> State) {
        let Some((claim, places)) = self.places.take() else { return };
        let mut world = self.publisher.world.lock();
        for (number, place) in places.into_iter().enumerate() {
            let state = state(number);
            let record = &mut world.ledger.claims[claim];
            record.states[place] = state;
            let id = record.messages[place];
            if state == State::Accepted {
                world.ledger.accepted(id);
            }
            world.tell(|_| {
                let replica = self.publisher.replica;
                match state {
                    State::Accepted => format!("message {id} of relay {replica} is accepted"),
                    State::Failed => format!("message {id} of relay {replica} is not accepted"),
                    _ => format!("relay {replica} drops the publish of message {id}"),
                }
            });
        }
    }
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        self.leave(|_| State::Dropped);
    }
}

impl WorldPublisher {
    async fn gate(&self, answer: Answer) {
        let wait = if answer == Answer::Hangs { Duration::MAX } else { self.world.lock().latency() };
        Gate::new(&self.world, self.replica, Behind::Acknowledgement, wait).await;
    }
}

#[async_trait]
impl Publisher for WorldPublisher {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let on_the_way = OnTheWay::begin(self, std::slice::from_ref(delivery));
        let answer = self.world.lock().answer(delivery.message.id.get());
        self.gate(answer).await;
        on_the_way.end(usize::from(answer == Answer::Accepts));
        match answer {
            Answer::Accepts => Ok(Accepted),
            Answer::Unavailable => Err(PublishError::unavailable("the way is down, on purpose")),
            Answer::Refuses | Answer::Hangs => Err(PublishError::refused("not now, on purpose")),
            Answer::Rejects => Err(PublishError::rejected("never, on purpose")),
            Answer::Panics => resume_unwind(Box::new("the publisher panics, on purpose")),
        }
    }
}

impl OrderedPublisher for WorldPublisher {}

#[async_trait]
impl BatchPublisher for WorldPublisher {
    async fn publish_batch(&self, deliveries: &[Delivery<'_>]) -> BatchOutcome {
        let on_the_way = OnTheWay::begin(self, deliveries);
        let (mut accepted, mut answer) = (0, Answer::Accepts);
        for delivery in deliveries {
            answer = self.world.lock().answer(delivery.message.id.get());
            if answer != Answer::Accepts {
                break;
            }
            accepted += 1;
        }
        let is_nonsense = answer == Answer::Rejects && accepted == 0;
        self.gate(answer).await;
        on_the_way.end(if answer == Answer::Panics { 0 } else { accepted });
        match answer {
            Answer::Accepts => BatchOutcome::all(deliveries),
            Answer::Panics => resume_unwind(Box::new("the publisher panics, on purpose")),
            // An answer that cannot be accepts nothing.
            _ if is_nonsense => {
                BatchOutcome::prefix(deliveries.len() + 1, PublishError::refused("more than all"))
            }
            _ => BatchOutcome::prefix(accepted, PublishError::refused("not all, on purpose")),
        }
    }
}
