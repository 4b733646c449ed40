//! One message to the publisher: the deadline, the panic, the observers.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use tokio_util::sync::CancellationToken;

use crate::relay::blocking::watched;
use crate::relay::observe::{discard, panic_text};
use crate::relay::shared::Shared;
use crate::{
    Accepted, BoxFuture, Delivery, Operation, OutboxMessage, Outcome, PublishError, Publisher, RefusalCause,
    TenantId,
};

/// How a publish ended.
#[derive(Debug)]
pub(crate) enum Published {
    Accepted,
    Refused(PublishError),
    /// The stop's deadline passed first.
    Dropped,
}

/// Publishes one message. The publisher's future is dropped at the publish deadline, and when `abort` fires.
pub(crate) async fn publish(
    shared: &Shared,
    publisher: &dyn Publisher,
    message: &OutboxMessage,
    attempt: u32,
    abort: &CancellationToken,
) -> Published {
    let source = shared.store.source();
    let mut watch = shared.observers.start(&Operation::Publish { source, message, attempt });
    let extended = (!shared.observers.is_empty()).then(|| {
        let mut headers = message.headers.clone();
        watch.propagate(&mut headers);
        headers
    });
    let delivery = Delivery::new(source, message)
        .with_headers(extended.as_ref().unwrap_or(&message.headers))
        .with_attempt(attempt);

    let answer =
        answer(shared, &message.tenant_id, |poll| watch.enter(poll), || publisher.publish(&delivery));
    match in_time(shared, answer, abort).await {
        Some(Ok(Ok(Accepted))) => {
            watch.end(&Outcome::Accepted);
            Published::Accepted
        }
        Some(Ok(Err(error))) => {
            watch.end(&Outcome::Refused { cause: RefusalCause::Publisher(error.class()), error: &error });
            Published::Refused(error)
        }
        Some(Err((cause, error))) => {
            watch.end(&Outcome::Refused { cause, error: &error });
            Published::Refused(error)
        }
        None => {
            watch.end(&Outcome::Abandoned);
            Published::Dropped
        }
    }
}

/// What the relay says in the publisher's place.
pub(super) type NoAnswer = (RefusalCause, PublishError);

/// The publisher's answer, or that there is none within the publish deadline; `None` if `abort` fires first.
pub(super) async fn in_time<T>(
    shared: &Shared,
    answer: impl Future<Output = Result<T, NoAnswer>>,
    abort: &CancellationToken,
) -> Option<Result<T, NoAnswer>> {
    tokio::select! {
        biased;
        answer = answer => Some(answer),
        () = abort.cancelled() => None,
        // Not armed before its first poll: a publisher that answers at once costs no timer.
        () = async { shared.clock.sleep(shared.config.publish_timeout).await } => Some(Err((
            RefusalCause::Deadline,
            PublishError::unavailable(format!(
                "no answer within the publish deadline of {} ms",
                shared.config.publish_timeout.as_millis()
            )),
        ))),
    }
}

/// The publisher's answer, polled inside of `enter`; a panic is an answer too.
pub(super) async fn answer<'a, T>(
    shared: &Shared,
    tenant: &TenantId,
    mut enter: impl FnMut(&mut dyn FnMut()),
    call: impl Fn() -> BoxFuture<'a, T>,
) -> Result<T, NoAnswer> {
    // Dropped last, and apart from the poll: once there is an answer, no destructor changes it.
    let mut future = Contained { value: None, shared, tenant };
    let answer: Result<T, Box<dyn Any + Send>> = poll_fn(|context| {
        let mut answer = Poll::Pending;
        enter(&mut || {
            // The call is made in here as well: it may panic before there is a future.
            let polled = catch_unwind(AssertUnwindSafe(|| {
                watched(&shared.blocking, &*shared.clock, tenant, || {
                    future.value.get_or_insert_with(&call).as_mut().poll(context)
                })
            }));
            answer = polled.map_or_else(|panic| Poll::Ready(Err(panic)), |polled| polled.map(Ok));
        });
        answer
    })
    .await;
    answer.map_err(|panic| {
        let error = PublishError::refused(format!("the publisher panicked: {}", panic_text(&*panic)));
        discard(panic);
        (RefusalCause::Panic, error)
    })
}

/// Something of the publisher's, whose destructor may panic without harm.
struct Contained<'s, T> {
    value: Option<T>,
    shared: &'s Shared,
    tenant: &'s TenantId,
}

impl<T> Drop for Contained<'_, T> {
    fn drop(&mut self) {
        let value = self.value.take();
        let dropped = AssertUnwindSafe(|| {
            watched(&self.shared.blocking, &*self.shared.clock, self.tenant, || drop(value));
        });
        if let Err(panic) = catch_unwind(dropped) {
            tracing::error!(panic = panic_text(&*panic), "a publisher's future panicked when it was dropped");
            discard(panic);
        }
    }
}
