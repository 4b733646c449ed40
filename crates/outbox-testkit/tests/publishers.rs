//! The laws of a publisher: an honest one keeps them, and each broken one breaks the law it is named for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use outbox_core::{Accepted, Delivery, PublishError, Publisher, async_trait};
use outbox_testkit::publisher_laws::{self, PublisherTrial};
use outbox_testkit::{PublisherCapability, PublisherHarness, Received, Unsupported, publisher_conformance};
use tokio::sync::watch;

/// A receiver with a connection that takes a few awaits.
#[derive(Clone)]
struct Receiver {
    messages: Arc<Mutex<Vec<Received>>>,
    down: Arc<watch::Sender<bool>>,
    hold: Arc<watch::Sender<bool>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Defect {
    None,
    AcceptsWithoutSending,
    AcceptsWithoutWaiting,
    LosesHeaders,
    RefusesARepeat,
    StaysLocked,
    Reverses,
    RefusesSideBySide,
    PanicsWhenDown,
}

struct Sender<const DEFECT: usize> {
    receiver: Receiver,
    busy: Mutex<bool>,
}

const DEFECTS: [Defect; 9] = [
    Defect::None,
    Defect::AcceptsWithoutSending,
    Defect::AcceptsWithoutWaiting,
    Defect::LosesHeaders,
    Defect::RefusesARepeat,
    Defect::StaysLocked,
    Defect::Reverses,
    Defect::RefusesSideBySide,
    Defect::PanicsWhenDown,
];

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl<const DEFECT: usize> Publisher for Sender<DEFECT> {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let defect = DEFECTS[DEFECT];
        let message = delivery.message;
        if *self.receiver.down.borrow() {
            assert!(defect != Defect::PanicsWhenDown, "the receiver is down");
            return Err(PublishError::unavailable("the receiver is down"));
        }
        if matches!(defect, Defect::StaysLocked | Defect::RefusesSideBySide) {
            let mut busy = locked(&self.busy);
            if *busy {
                return Err(PublishError::refused("another publish is under way"));
            }
            *busy = true;
        }
        // One that merely refuses company clears its flag when it is dropped.
        let _clear = (defect == Defect::RefusesSideBySide).then(|| ClearWhenDropped(&self.busy));
        tokio::task::yield_now().await;
        let headers = if defect == Defect::LosesHeaders {
            outbox_core::Headers::new()
        } else {
            delivery.headers.clone()
        };
        let received = Received::new(delivery.source, message.id, message.payload.clone(), headers);
        match defect {
            Defect::AcceptsWithoutSending => return Ok(Accepted),
            Defect::RefusesARepeat if locked(&self.receiver.messages).contains(&received) => {
                return Err(PublishError::rejected("a duplicate"));
            }
            // Each is there when it is accepted, but one of them before its predecessor.
            Defect::Reverses if message.id.get() % 50 == 49 => {
                let place = locked(&self.receiver.messages).len().saturating_sub(1);
                locked(&self.receiver.messages).insert(place, received);
            }
            _ => locked(&self.receiver.messages).push(received),
        }
        tokio::task::yield_now().await;
        if defect != Defect::AcceptsWithoutWaiting {
            let mut hold = self.receiver.hold.subscribe();
            let _ = hold.wait_for(|hold| !hold).await;
        }
        *locked(&self.busy) = false;
        Ok(Accepted)
    }
}

struct ClearWhenDropped<'a>(&'a Mutex<bool>);

impl Drop for ClearWhenDropped<'_> {
    fn drop(&mut self) {
        *locked(self.0) = false;
    }
}

struct Queue<const DEFECT: usize>(Receiver);

impl<const DEFECT: usize> PublisherHarness for Queue<DEFECT> {
    type Publisher = Sender<DEFECT>;
    const CANNOT: &'static [PublisherCapability] = &[];

    async fn open() -> Self {
        Self(Receiver {
            messages: Arc::default(),
            down: Arc::new(watch::Sender::new(false)),
            hold: Arc::new(watch::Sender::new(false)),
        })
    }

    async fn publisher(&self) -> Self::Publisher {
        Sender { receiver: self.0.clone(), busy: Mutex::default() }
    }

    async fn received(&self) -> Vec<Received> {
        locked(&self.0.messages).clone()
    }

    async fn set_down(&self, down: bool) -> Result<(), Unsupported> {
        self.0.down.send_replace(down);
        Ok(())
    }

    async fn hold_acknowledgements(&self, hold: bool) -> Result<(), Unsupported> {
        self.0.hold.send_replace(hold);
        Ok(())
    }
}

mod honest {
    use super::*;
    publisher_conformance!(Queue<0>);
}

/// Whether a publisher with this defect breaks the law.
fn breaks<const DEFECT: usize, F>(name: &'static str, law: fn(PublisherTrial<Queue<DEFECT>>) -> F) -> bool
where
    F: Future<Output = ()> + Send + 'static,
{
    catch_unwind(AssertUnwindSafe(|| publisher_laws::run(name, law))).is_err()
}

/// For every law there is a publisher that breaks it, and the suite says so.
#[test]
fn each_law_of_a_publisher_can_fail() {
    use publisher_laws as laws;
    assert!(breaks::<1, _>("accepted_means_acknowledged", laws::accepted_means_acknowledged));
    assert!(breaks::<2, _>(
        "nothing_is_accepted_before_it_is_acknowledged",
        laws::nothing_is_accepted_before_it_is_acknowledged
    ));
    assert!(breaks::<3, _>("publish_carries_the_whole_message", laws::publish_carries_the_whole_message));
    assert!(breaks::<4, _>("publish_is_repeat_safe", laws::publish_is_repeat_safe));
    assert!(breaks::<5, _>("publish_is_cancel_safe", laws::publish_is_cancel_safe));
    assert!(breaks::<6, _>("publish_keeps_the_order", laws::publish_keeps_the_order));
    assert!(breaks::<7, _>(
        "publish_works_for_many_tenants_at_once",
        laws::publish_works_for_many_tenants_at_once
    ));
    assert!(breaks::<8, _>(
        "publish_refuses_while_the_receiver_is_down",
        laws::publish_refuses_while_the_receiver_is_down
    ));
}
