//! Replicas over one table take turns: no two publishes of a tenant at once, ids rising, nothing twice.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{Accepted, Clock, Delivery, PublishError, Publisher, Relay, RelayHandle, async_trait};
use outbox_testkit::{ManualClock, Recorder};

use crate::stage::{POLL, Stage, calm, config, tenant};

/// Takes a random time, up to 20 ms.
struct Jittery(ManualClock, std::sync::Mutex<fastrand::Rng>);

impl Jittery {
    fn recorded(clock: &ManualClock, seed: u64) -> Recorder {
        Recorder::around(Self(clock.clone(), fastrand::Rng::with_seed(seed).into()))
    }
}

#[async_trait]
impl Publisher for Jittery {
    async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let millis = self.1.lock().unwrap().u64(..=20);
        self.0.sleep(Duration::from_millis(millis)).await;
        Ok(Accepted)
    }
}

fn replica(stage: &Stage, publisher: &Recorder, seed: u64) -> Relay {
    stage.builder(config(), publisher.clone()).seed(seed).build().unwrap()
}

/// S05: one tenant, 1,000 messages, random latencies, three replicas: the starts rise strictly.
#[tokio::test]
async fn three_replicas_with_random_latencies_keep_the_order() {
    for seed in 0..3 {
        let stage = Stage::new();
        let ids = stage.write("a", 1_000);
        let recorder = Jittery::recorded(&stage.clock, seed);
        let relays = [1, 2, 3].map(|nth| replica(&stage, &recorder, seed * 10 + nth));
        let _running = relays.map(|relay| relay.start().unwrap());
        stage.until(|| stage.all_marked()).await;
        assert_eq!(recorder.accepted(&tenant("a")), ids);
        recorder.assert_in_order();
    }
}

/// Two replicas both get their turns at a tenant that always has a full batch.
#[tokio::test]
async fn replicas_share_a_tenant_under_backlog() {
    let stage = Stage::new();
    stage.write("a", 2_000);
    let shares = [1, 2].map(|seed| (Jittery::recorded(&stage.clock, seed), seed));
    let _running = shares.clone().map(|(recorder, seed)| {
        let config = config().max_batch(32);
        stage.builder(config, recorder).seed(seed).build().unwrap().start().unwrap()
    });
    stage.until(|| stage.all_marked()).await;
    for (recorder, seed) in shares {
        assert!(!recorder.accepted(&tenant("a")).is_empty(), "replica {seed} never had a turn");
    }
}

/// S14: 64 tenants, a slow publisher, replicas that come and go every two seconds.
#[tokio::test]
async fn replicas_that_come_and_go_never_publish_a_tenant_at_once() {
    let stage = Stage::new();
    let names: Vec<String> = (0..64).map(|nth| format!("t{nth}")).collect();
    for name in &names {
        stage.write(name, 4);
    }
    let slow = outbox_testkit::PublishFault::Slow(Duration::from_secs(10));
    stage.publisher.fail(outbox_testkit::When::Every, slow);
    let builder = |seed| {
        let config = config().concurrency(16).stop_timeout(Duration::from_secs(60));
        stage.builder(config, stage.recorder.clone()).seed(seed).build().unwrap()
    };
    let mut running: Vec<RelayHandle> = (0..3).map(|seed| builder(seed).start().unwrap()).collect();
    for seed in 3..40 {
        stage.pass(Duration::from_secs(2)).await;
        running.push(builder(seed).start().unwrap());
        drop(running.remove(0));
    }
    stage.until(|| stage.all_marked()).await;
    stage.recorder.assert_in_order();
    stage.recorder.assert_no_duplicates();
    let accepted: usize = names.iter().map(|name| stage.recorder.accepted(&tenant(name)).len()).sum();
    assert_eq!(accepted, 256);
}

/// A tenant held elsewhere is looked at again after about a poll, and taken as soon as it is free.
#[tokio::test]
async fn a_tenant_held_elsewhere_is_taken_within_two_polls_of_its_release() {
    let stage = Stage::new();
    stage.write("a", 1);
    let request = outbox_core::ClaimRequest::new(tenant("a"), std::num::NonZeroU32::MIN);
    let held = outbox_core::Store::claim(&stage.table, &request).await.unwrap();
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    stage.pass(POLL * 50).await;
    assert_eq!((stage.tried(), stage.seen.back_offs("a")), (vec![], vec![]));
    let claims = stage.store.started(outbox_core::StoreOperation::Claim);
    assert!((40..=68).contains(&claims), "{claims} claims in fifty polls");
    let report = relay.health().check().await;
    assert_eq!(report.tenants.get("a").unwrap().state, outbox_core::TenantState::HeldElsewhere);
    drop(held);
    stage.pass(POLL * 5 / 4).await;
    assert!(stage.all_marked());
}

/// The same on real threads: four workers, three replicas, a clock that another thread drives.
#[test]
fn replicas_on_real_threads_keep_the_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    runtime.block_on(async {
        let stage = Arc::new(Stage::new());
        for name in ["a", "b", "c", "d", "e", "f"] {
            stage.write(name, 300);
        }
        let recorder = Jittery::recorded(&stage.clock, 5);
        let relays = [1, 2, 3].map(|seed| replica(&stage, &recorder, seed));
        let running = relays.map(|relay| relay.start().unwrap());
        // The clock goes a few times as fast as the real one, and no faster: a busy machine must not make an answer of
        // the store look a second old.
        let begin = std::time::Instant::now();
        while !stage.all_marked() {
            assert!(begin.elapsed() < Duration::from_mins(2), "it never came to it");
            std::thread::sleep(Duration::from_micros(100));
            stage.clock.advance(Duration::from_millis(1));
        }
        for running in running {
            let stopped = tokio::spawn(running.stop());
            while !stopped.is_finished() {
                calm().await;
                stage.clock.advance(Duration::from_millis(1));
            }
        }
        recorder.assert_in_order();
        recorder.assert_no_duplicates();
    });
}
