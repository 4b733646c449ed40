//! A publisher that blocks its thread: the log names the tenant, once, and others wait for it once.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use outbox_core::{Accepted, Delivery, PublishError, Publisher, Publishing, Relay, async_trait};
use outbox_memory::MemoryStore;
use outbox_testkit::{ManualClock, Recorder};

use crate::outlets::{Ordered, Slices};
use crate::stage::{Stage, config, message};
use crate::written::Written;

const SECOND: Duration = Duration::from_secs(1);

/// Keeps its thread until so much time has passed: in its poll, or when its future is dropped.
#[derive(Clone)]
struct Blocks {
    clock: ManualClock,
    time: Duration,
    in_drop: bool,
}

struct Blocked<'a>(&'a Blocks);

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        self.0.clock.advance(self.0.time);
    }
}

#[async_trait]
impl Publisher for Blocks {
    async fn publish(&self, _delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let blocked = Blocked(self);
        if self.in_drop {
            // Dropped at the publish deadline.
            std::future::pending::<()>().await;
        }
        drop(blocked);
        Ok(Accepted)
    }
}

fn blocked(lines: &[String]) -> Vec<&String> {
    lines.iter().filter(|line| line.contains("blocked its thread")).collect()
}

/// However the publisher is called: a tenant is told of once, with how long it was, whatever becomes of its messages.
#[tokio::test]
async fn a_publisher_that_blocks_its_thread_is_told_once_for_each_tenant() {
    for in_drop in [false, true] {
        for shape in 0..4 {
            let stage = Stage::new();
            let (written, _guard) = Written::collect();
            let publisher = Blocks { clock: stage.clock.clone(), time: SECOND * 3, in_drop };
            let publishing = match shape {
                0 => Publishing::in_order(publisher),
                1 => Publishing::by_subject(publisher, 2),
                2 => Publishing::pipelined(Ordered(publisher), 2),
                _ => Publishing::in_slices(Slices::of(publisher), outbox_core::Slices::default()),
            };
            stage.write("a", 3);
            stage.write("b", 3);
            let _running = stage.relay_of(config(), publishing).start().unwrap();
            let both = || blocked(&written.lines()).len() == 2;
            stage.until(|| if in_drop { both() } else { stage.all_marked() }).await;
            stage.pass(SECOND * 60).await;
            let lines = written.lines_of(&["WARN"]);
            let told = blocked(&lines);
            assert_eq!(told.len(), 2, "{shape} {in_drop}: {lines:#?}");
            // A slice is one call.
            let took = if shape == 3 && !in_drop { "took=9s" } else { "took=3s" };
            for tenant in ["tenant=\"a\"", "tenant=\"b\""] {
                let names = |line: &&&String| line.contains(tenant) && line.contains(took);
                assert_eq!(told.iter().filter(names).count(), 1, "{shape} {in_drop}: {told:#?}");
            }
        }
    }
}

/// A poll of less than a second is nobody's concern.
#[tokio::test]
async fn a_publisher_that_is_slow_by_less_than_a_second_is_not_told() {
    let stage = Stage::new();
    let (written, _guard) = Written::collect();
    let time = SECOND - Duration::from_millis(1);
    let publisher = Blocks { clock: stage.clock.clone(), time, in_drop: false };
    stage.write("a", 3);
    let running = stage.relay_of(config(), publisher).start().unwrap();
    stage.until(|| stage.all_marked()).await;
    running.stop().await.unwrap();
    assert!(blocked(&written.lines()).is_empty());
}

#[derive(Default)]
struct State {
    /// How many messages of `a` were begun.
    begun: usize,
    /// Whether one of `b` was accepted.
    another: bool,
    waited_in_vain: bool,
}

/// Keeps its thread with the second message of `a` until one of `b` was accepted.
struct WaitsForAnother {
    clock: ManualClock,
    state: Mutex<State>,
    changed: Condvar,
    recorder: Recorder,
}

impl WaitsForAnother {
    fn block(&self, is_another: bool) {
        let mut state = self.state.lock().unwrap();
        state.another |= is_another;
        state.begun += usize::from(!is_another);
        self.changed.notify_all();
        if !is_another && state.begun == 1 {
            // By the relay's clock this one took long: nobody waits for it in truth.
            self.clock.advance(SECOND);
        } else if !is_another {
            let waited = self.changed.wait_timeout_while(state, SECOND * 30, |state| !state.another);
            let (mut state, timeout) = waited.unwrap();
            state.waited_in_vain = timeout.timed_out();
        }
    }
}

#[async_trait]
impl Publisher for WaitsForAnother {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.block(delivery.message.tenant_id.as_str() == "b");
        self.recorder.publish(delivery).await
    }
}

/// After the first time the other tenants go on while a publisher blocks its thread, even if it is the only one.
#[test]
fn a_publisher_that_blocked_its_thread_once_holds_up_no_other_tenant() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (clock, recorder) = (ManualClock::new(), Recorder::new());
    let store = MemoryStore::new().with_clock(Arc::new(clock.clone()));
    let publisher = Arc::new(WaitsForAnother {
        clock: clock.clone(),
        state: Mutex::default(),
        changed: Condvar::new(),
        recorder: recorder.clone(),
    });
    let relay = Relay::builder(store.clone(), Arc::clone(&publisher), config().build().unwrap());
    let relay = relay.clock(Arc::new(clock)).build().unwrap();
    store.append_all([message("a"), message("a")]);
    let _entered = runtime.enter();
    let running = relay.start().unwrap();
    // The runtime's only thread is kept by the second message of `a` when `b` gets its own.
    let state = publisher.state.lock().unwrap();
    drop(publisher.changed.wait_while(state, |state| state.begun < 2).unwrap());
    store.append(message("b"));
    relay.wake();
    runtime.block_on(recorder.wait_for_accepted(3));
    runtime.block_on(running.stop()).unwrap();
    assert!(!publisher.state.lock().unwrap().waited_in_vain);
}
