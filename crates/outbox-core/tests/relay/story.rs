//! Random stories: two relays over one table with faults of every sort, and what must hold all the same.

use std::time::Duration;

use std::sync::Arc;

use outbox_core::{Publishing, RefusalClass, Relay, RelayHandle, StoreOperation};
use outbox_testkit::{PublishFault, StoreFault, When};
use proptest::prelude::*;

use crate::outlets::{Ordered, Slices};
use crate::stage::{POLL, Stage, calm, config, tenant};

const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Step {
    Write {
        tenant: usize,
        count: usize,
    },
    Publish {
        tenant: usize,
        times: u32,
        fault: PublishFault,
    },
    Store {
        operation: StoreOperation,
        after: usize,
        fault: StoreFault,
    },
    LoseSessions,
    /// Stops a relay and starts it again, or drops its handle and starts another.
    Restart {
        relay: usize,
        gently: bool,
    },
    Wake(usize),
    Pass(u64),
}

fn publish_fault() -> impl Strategy<Value = PublishFault> {
    prop_oneof![
        Just(PublishFault::Refuse(RefusalClass::Refused)),
        Just(PublishFault::Refuse(RefusalClass::Rejected)),
        Just(PublishFault::PanicInPoll),
        Just(PublishFault::PanicEagerly),
        Just(PublishFault::PanicInDrop),
        Just(PublishFault::Hang),
        Just(PublishFault::LoseAcknowledgement),
        (1_u64..1_500).prop_map(|millis| PublishFault::Slow(Duration::from_millis(millis))),
    ]
}

fn store_fault() -> impl Strategy<Value = (StoreOperation, StoreFault)> {
    let operation = prop_oneof![
        Just(StoreOperation::Probe),
        Just(StoreOperation::Claim),
        Just(StoreOperation::Verify),
        Just(StoreOperation::Settle),
    ];
    let fault = prop_oneof![
        Just(StoreFault::Fail),
        Just(StoreFault::LoseAnswer),
        Just(StoreFault::Panic),
        (1_u64..2_000).prop_map(|millis| StoreFault::Slow(Duration::from_millis(millis))),
    ];
    (operation, fault)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..NAMES.len(), 1_usize..40).prop_map(|(tenant, count)| Step::Write { tenant, count }),
        3 => (0..NAMES.len(), 1_u32..4, publish_fault())
            .prop_map(|(tenant, times, fault)| Step::Publish { tenant, times, fault }),
        3 => (store_fault(), 1_usize..6)
            .prop_map(|((operation, fault), after)| Step::Store { operation, after, fault }),
        1 => Just(Step::LoseSessions),
        1 => (0_usize..2, any::<bool>()).prop_map(|(relay, gently)| Step::Restart { relay, gently }),
        1 => (0_usize..2).prop_map(Step::Wake),
        6 => (1_u64..3_000).prop_map(Step::Pass),
    ]
}

/// How the relays publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Tenant,
    Subject,
    Pipelined,
    Slices,
}

impl Way {
    fn stage(self) -> Stage {
        match self {
            Self::Tenant | Self::Slices => Stage::new(),
            Self::Subject => Stage::by_subject(),
            Self::Pipelined => Stage::unordered(),
        }
    }
}

const SUBJECTS: [&str; 4] = ["w", "x", "y", "z"];

/// Plays a story to its end. Answers whether there was anything that excuses a duplicate.
async fn play(stage: &Stage, way: Way, steps: &[Step]) -> bool {
    let relays = [1, 2].map(|seed| {
        let config =
            config().stop_timeout(Duration::from_millis(500)).publish_timeout(Duration::from_secs(2));
        let config = config.store_timeout(Duration::from_secs(5));
        let (store, publisher) = (stage.store.clone(), stage.publisher.clone());
        let publishing = match way {
            Way::Tenant => Publishing::in_order(publisher),
            Way::Subject => Publishing::by_subject(publisher, 3),
            Way::Pipelined => Publishing::pipelined(Ordered(publisher), 3),
            Way::Slices => {
                let bounds = outbox_core::Slices::default().with_max_messages(7);
                Publishing::in_slices(Slices::of(publisher), bounds)
            }
        };
        let builder = Relay::builder(store, publishing, config.build().unwrap());
        builder.clock(Arc::new(stage.clock.clone())).observer(stage.seen.clone()).seed(seed).build().unwrap()
    });
    let mut running: Vec<Option<RelayHandle>> =
        relays.iter().map(|relay| Some(relay.start().unwrap())).collect();
    let mut excused = false;
    for step in steps {
        match step {
            Step::Write { tenant, count } => {
                stage.write_about(NAMES[*tenant], SUBJECTS.iter().cycle().copied().take(*count));
            }
            Step::Publish { tenant: of, times, fault } => {
                // What is accepted beyond a failure, or in a slice that ended unknown, comes again.
                excused |= matches!(way, Way::Pipelined | Way::Slices)
                    || matches!(fault, PublishFault::LoseAcknowledgement);
                stage.publisher.fail_times(*times, When::Tenant(tenant(NAMES[*of])), fault.clone());
            }
            Step::Store { operation, after, fault } => {
                let harmless = matches!(operation, StoreOperation::Probe | StoreOperation::Claim);
                excused |= !harmless && !matches!(fault, StoreFault::Slow(_));
                stage.store.fail_nth(stage.store.started(*operation) + after, *operation, fault.clone());
            }
            Step::LoseSessions => excused |= stage.table.kill_sessions() > 0,
            Step::Restart { relay, gently } => {
                let handle = running[*relay].take();
                if let Some(handle) = handle.filter(|_| *gently) {
                    let stopped = tokio::spawn(handle.stop());
                    stage.until(|| stopped.is_finished()).await;
                    stopped.await.unwrap().unwrap();
                }
                running[*relay] = Some(relays[*relay].start().unwrap());
            }
            Step::Wake(relay) => relays[*relay].wake(),
            Step::Pass(millis) => stage.pass(Duration::from_millis(*millis)).await,
        }
    }
    stage.publisher.heal();
    stage.store.heal();
    stage.until(|| stage.all_marked()).await;
    for handle in running.into_iter().flatten() {
        let stopped = tokio::spawn(handle.stop());
        stage.until(|| stopped.is_finished()).await;
        stopped.await.unwrap().unwrap();
    }
    stage.pass(POLL * 50).await;
    calm().await;
    excused
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nothing is lost, first publications are in order, duplicates have an excuse, each operation has one end,
    /// and at the end everything is marked and nothing held.
    #[test]
    fn nothing_is_lost_and_order_holds_whatever_fails(
        way in prop_oneof![Just(Way::Tenant), Just(Way::Subject), Just(Way::Pipelined), Just(Way::Slices)],
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let stage = way.stage();
            let excused = play(&stage, way, &steps).await;
            for name in NAMES {
                let mut accepted = stage.broker.accepted(&tenant(name));
                accepted.sort();
                accepted.dedup();
                prop_assert_eq!(accepted, stage.marked(name));
            }
            prop_assert_eq!(stage.broker.violations(), []);
            let duplicates = stage.broker.duplicates();
            prop_assert!(excused || duplicates.is_empty(), "{duplicates:?} without an excuse");
            prop_assert_eq!(stage.table.held(), []);
            prop_assert_eq!(stage.store.dropped(), []);
            prop_assert_eq!(stage.clock.sleepers(), 0);
            stage.seen.assert_balanced();
            Ok(())
        })?;
    }
}
