//! A publisher that fails as it is told.
#![deny(clippy::missing_trait_methods)]

use std::fmt;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outbox_core::{Accepted, Clock, Delivery, MessageId, PublishError, Publisher, RefusalClass, TenantId};

/// Puts faults in front of a publisher. A clone has the same script.
#[derive(Clone)]
pub struct FaultyPublisher {
    inner: Arc<dyn Publisher>,
    clock: Arc<dyn Clock>,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    calls: u32,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    when: When,
    /// How often it still applies; `None` is always.
    times: Option<u32>,
    fault: PublishFault,
}

/// Which publishes a fault is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// Every one.
    Every,
    /// The publish of this number, counted from 1 over all tenants.
    Nth(u32),
    /// Every publish of this message.
    Message(MessageId),
    /// Every publish of this tenant.
    Tenant(TenantId),
}

/// What goes wrong with a publish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishFault {
    /// It is refused; the receiver does not get it.
    Refuse(RefusalClass),
    /// Its future panics when it is polled.
    PanicInPoll,
    /// The call panics before there is a future.
    PanicEagerly,
    /// It is accepted, and its future panics when it is dropped.
    PanicInDrop,
    /// Its future never ends.
    Hang,
    /// It takes so long, by the clock, and is then handed on.
    Slow(Duration),
    /// The receiver gets it, and the answer is lost.
    LoseAcknowledgement,
}

impl FaultyPublisher {
    /// Puts faults in front of a publisher; none yet. The clock is what slow publishes wait on.
    pub fn new(inner: impl Publisher, clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::new(inner), clock, script: Arc::default() }
    }

    /// Lets these publishes fail, always. Of several rules that apply, the first is taken.
    pub fn fail(&self, when: When, fault: PublishFault) {
        self.add(Rule { when, times: None, fault });
    }

    /// Lets the first `times` of these publishes fail.
    pub fn fail_times(&self, times: u32, when: When, fault: PublishFault) {
        self.add(Rule { when, times: Some(times), fault });
    }

    /// Lets every publish succeed from now on.
    pub fn heal(&self) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).rules.clear();
    }

    /// How many publishes there were.
    pub fn calls(&self) -> u32 {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    fn add(&self, rule: Rule) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).rules.push(rule);
    }

    fn next_fault(&self, delivery: &Delivery<'_>) -> Option<PublishFault> {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.calls += 1;
        let (calls, message) = (script.calls, delivery.message);
        let applies = |rule: &&mut Rule| {
            rule.times != Some(0)
                && match &rule.when {
                    When::Every => true,
                    When::Nth(nth) => *nth == calls,
                    When::Message(id) => *id == message.id,
                    When::Tenant(tenant) => *tenant == message.tenant_id,
                }
        };
        let rule = script.rules.iter_mut().find(applies)?;
        rule.times = rule.times.map(|times| times - 1);
        Some(rule.fault.clone())
    }
}

impl fmt::Debug for FaultyPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyPublisher").field("script", &self.script).finish_non_exhaustive()
    }
}

// Written out, without the attribute: a call that panics before there is a future cannot be an `async fn`.
impl Publisher for FaultyPublisher {
    fn publish<'a, 'b, 'c, 'f>(
        &'a self,
        delivery: &'b Delivery<'c>,
    ) -> Pin<Box<dyn Future<Output = Result<Accepted, PublishError>> + Send + 'f>>
    where
        'a: 'f,
        'b: 'f,
        'c: 'f,
        Self: 'f,
    {
        match self.next_fault(delivery) {
            None => self.inner.publish(delivery),
            Some(PublishFault::PanicEagerly) => panic!("the publisher panics before there is a future"),
            Some(PublishFault::Refuse(class)) => Box::pin(async move { Err(refusal(class)) }),
            Some(PublishFault::PanicInPoll) => Box::pin(async { panic!("the publisher panics in its poll") }),
            Some(PublishFault::Hang) => Box::pin(pending()),
            Some(PublishFault::PanicInDrop) => {
                let bomb = PanicWhenDropped(self.inner.publish(delivery));
                Box::pin(bomb)
            }
            Some(PublishFault::Slow(duration)) => Box::pin(async move {
                self.clock.sleep(duration).await;
                self.inner.publish(delivery).await
            }),
            Some(PublishFault::LoseAcknowledgement) => Box::pin(async move {
                self.inner.publish(delivery).await?;
                Err(PublishError::unavailable("the acknowledgement was lost, on purpose"))
            }),
        }
    }
}

fn refusal(class: RefusalClass) -> PublishError {
    let reason = "refused, on purpose";
    match class {
        RefusalClass::Unavailable => PublishError::unavailable(reason),
        RefusalClass::Rejected => PublishError::rejected(reason),
        _ => PublishError::refused(reason),
    }
}

struct PanicWhenDropped<F>(F);

impl<F: Future + Unpin> Future for PanicWhenDropped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<F::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<F> Drop for PanicWhenDropped<F> {
    fn drop(&mut self) {
        // A second panic while one unwinds would abort the process.
        if !std::thread::panicking() {
            std::panic::panic_any("the publisher panics in its drop");
        }
    }
}
