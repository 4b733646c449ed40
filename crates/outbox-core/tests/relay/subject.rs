//! By subject: one message of a subject at a time, subjects side by side; a subject waits alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Accepted, ClaimRequest, Delivery, DrainOutcome, OperationKind, PublishError, Publisher, Publishing,
    RefusalClass, Relay, RelayConfigBuilder, StoreOperation, TenantCondition, TenantState, async_trait,
};
use outbox_testkit::{PublishFault, Recorder, When};
use tokio::sync::Barrier;

use crate::seen::Told;
use crate::stage::{POLL, Stage, calm, config, tenant};

const BOUND: usize = ClaimRequest::MAX_EXCLUDED_SUBJECTS;

fn relay(stage: &Stage, in_flight: usize, config: RelayConfigBuilder) -> Relay {
    stage.relay_of(config, Publishing::by_subject(stage.recorder.clone(), in_flight))
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number}")).collect()
}

/// The subjects that observers were told are held back, and not that they recovered.
fn told_to_wait(stage: &Stage) -> BTreeSet<String> {
    let mut waiting = BTreeSet::new();
    for told in stage.seen.notices() {
        match told {
            Told::SubjectBackedOff { subject, .. } => _ = waiting.insert(subject),
            Told::SubjectRecovered(subject) => {
                assert!(waiting.remove(&subject), "{subject} recovered and did not wait");
            }
            _ => {}
        }
    }
    waiting
}

/// Answers when so many are waiting for an answer.
struct Together(Arc<Barrier>);

#[async_trait]
impl Publisher for Together {
    async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.0.wait().await;
        Ok(Accepted)
    }
}

/// Really as many at once as was asked for, and never two of a subject: the publisher answers only to 32 at once.
#[tokio::test]
async fn so_many_subjects_are_in_flight_as_the_ordering_says() {
    let stage = Stage::by_subject();
    let subjects = names(64);
    for _ in 0..4 {
        stage.write_about("a", subjects.iter().map(String::as_str));
    }
    let together = Recorder::around(Together(Arc::new(Barrier::new(32)))).by_subject();
    let relay = stage
        .builder(config().initial_batch(300), Publishing::by_subject(together.clone(), 32))
        .build()
        .unwrap();
    let _running = relay.start().unwrap();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(together.most_in_flight(), 32);
    together.assert_in_order();
    together.assert_no_duplicates();
    assert_eq!(stage.store.started(StoreOperation::Settle), 1, "one settlement, when nothing is in flight");
}

/// A refused subject is held back at once, and backs off alone: its later messages wait, the others' are marked,
/// prefix or not. It is told, and told again when it flows.
#[tokio::test]
async fn a_refused_subject_waits_alone_and_the_others_go_on() {
    let stage = Stage::by_subject();
    let ids = stage.write_about("a", ["x", "y", "x", "z", "y", "x"]);
    let refuse = PublishFault::Refuse(RefusalClass::Rejected);
    stage.publisher.fail(When::Message(ids[2]), refuse);
    let relay = relay(&stage, 4, config());
    let _running = relay.start().unwrap();
    stage.pass(Duration::from_millis(1)).await;
    assert_eq!(stage.marked("a"), [ids[0], ids[1], ids[3], ids[4]]);
    assert!(!stage.tried().contains(&ids[5]), "it follows a refused message");
    let health = relay.health().check().await.tenants.get("a").unwrap().clone();
    assert_eq!((health.condition(), health.held_subjects.len()), (TenantCondition::HoldingBack, 1));
    assert_eq!((health.held_subjects[0].subject_id.as_str(), health.held_subjects[0].message), ("x", ids[2]));
    assert!(health.to_string().contains("x after 1 failures in a row, message 3: rejected"), "{health}");
    assert_eq!(health.state, TenantState::Idle);
    let later = stage.write_about("a", ["y", "w"]);
    stage.pass(POLL * 2).await;
    assert!(later.iter().all(|id| stage.marked("a").contains(id)), "the tenant goes on");
    stage.pass(Duration::from_secs(20)).await;
    stage.publisher.heal();
    stage.until(|| stage.all_marked()).await;
    let told: Vec<_> = stage.seen.notices();
    let failures: Vec<u32> = told
        .iter()
        .filter_map(|told| match told {
            Told::SubjectBackedOff { subject, message, failures, .. } if subject == "x" => {
                assert_eq!(*message, ids[2]);
                Some(*failures)
            }
            _ => None,
        })
        .collect();
    assert_eq!(failures, (1..=u32::try_from(failures.len()).unwrap()).collect::<Vec<_>>());
    assert!((4..=9).contains(&failures.len()), "{failures:?} in 20 s: its waits grow");
    assert!(told.contains(&Told::SubjectRecovered("x".to_owned())));
    assert!(stage.seen.back_offs("a").is_empty(), "the tenant never waited");
    let attempts = stage.recorder.deliveries().into_iter().filter(|d| d.id == ids[2]).map(|d| d.attempt);
    assert_eq!(
        attempts.collect::<Vec<_>>(),
        (1..=u32::try_from(failures.len()).unwrap() + 1).collect::<Vec<_>>()
    );
    stage.broker.assert_in_order();
    stage.broker.assert_no_duplicates();
    assert!(relay.health().check().await.tenants.iter().all(|(_, health)| health.held_subjects.is_empty()));
}

/// More than a full batch of rows in a refused subject: they are left out, and the others behind them go out.
#[tokio::test]
async fn more_than_a_full_batch_in_a_refused_subject_keeps_nobody_else() {
    let stage = Stage::by_subject();
    let stuck = stage.write_about("a", std::iter::repeat_n("stuck", 500));
    let others = names(3);
    let behind = stage.write_about("a", (0..90).map(|nth| others[nth % 3].as_str()));
    stage.publisher.fail(When::Message(stuck[0]), PublishFault::Refuse(RefusalClass::Refused));
    let _running = relay(&stage, 8, config()).start().unwrap();
    stage.pass(Duration::from_millis(1)).await;
    assert_eq!(stage.marked("a"), behind, "without waiting for a poll");
    assert_eq!(stage.recorder.deliveries().iter().filter(|d| d.subject_id == "stuck").count(), 1);
    stage.publisher.heal();
    stage.until(|| stage.all_marked()).await;
    stage.broker.assert_in_order();
    stage.broker.assert_no_duplicates();
}

/// A subject whose publish hangs is held back at the deadline; what was accepted meanwhile is marked then.
#[tokio::test]
async fn a_hanging_subject_is_held_back_at_the_publish_deadline() {
    let stage = Stage::by_subject();
    let ids = stage.write_about("a", ["x", "y", "x", "y", "y"]);
    stage.publisher.fail_times(1, When::Message(ids[0]), PublishFault::Hang);
    let relay = relay(&stage, 4, config().publish_timeout(Duration::from_secs(5)));
    let _running = relay.start().unwrap();
    stage.pass(Duration::from_secs(5) - Duration::from_millis(1)).await;
    assert_eq!(stage.broker.accepted(&tenant("a")), [ids[1], ids[3], ids[4]]);
    assert_eq!(stage.marked("a"), [], "nothing is marked while something is in flight");
    stage.pass(Duration::from_millis(1)).await;
    assert_eq!(stage.marked("a"), [ids[1], ids[3], ids[4]]);
    stage.until(|| stage.all_marked()).await;
    stage.broker.assert_in_order();
    stage.broker.assert_no_duplicates();
}

/// Where more subjects are refused than a claim can leave out, the tenant waits: an outage is no storm.
#[tokio::test]
async fn more_refused_subjects_than_a_claim_can_leave_out_back_the_tenant_off() {
    let stage = Stage::by_subject();
    let subjects = names(BOUND * 5);
    stage.write_about("a", subjects.iter().map(String::as_str));
    stage.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Unavailable));
    let _running = relay(&stage, 8, config()).start().unwrap();
    stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
    let tried = stage.tried().len();
    assert!((BOUND..BOUND + 9).contains(&tried), "{tried} publishes before the tenant waits");
    stage.pass(Duration::from_secs(600)).await;
    // At most a first batch, once in a back-off of 22 s at the least.
    let tried = stage.tried().len() - tried;
    assert!(tried < 600 / 22 * 32 + 10 * 32, "{tried} publishes in 10 minutes of an outage");
    assert_eq!(told_to_wait(&stage).len(), BOUND, "for the others the tenant waits");
    stage.publisher.heal();
    stage.until(|| stage.all_marked()).await;
    stage.broker.assert_in_order();
    stage.broker.assert_no_duplicates();
    stage.pass(POLL * 2).await;
    assert_eq!(told_to_wait(&stage), BTreeSet::new(), "whoever was told to wait is told to flow again");
}

/// What a held subject waits with is published by another relay: observers are told that the subject waits no more,
/// and nothing of its tenant, which never waited.
#[tokio::test]
async fn a_subject_that_another_relay_served_is_told_to_have_recovered() {
    let stage = Stage::by_subject();
    let ids = stage.write_about("a", ["x", "y"]);
    stage.publisher.fail(When::Message(ids[0]), PublishFault::Refuse(RefusalClass::Refused));
    let _running = relay(&stage, 4, config()).start().unwrap();
    stage.pass(Duration::from_millis(1)).await;
    assert_eq!(told_to_wait(&stage), BTreeSet::from(["x".to_owned()]));
    let other = Relay::builder(stage.table.clone(), Recorder::new(), config().build().unwrap());
    let other = other.clock(Arc::new(stage.clock.clone())).build().unwrap();
    assert_eq!(other.drain().await.unwrap().published, 1);
    stage.pass(POLL * 2).await;
    assert_eq!(told_to_wait(&stage), BTreeSet::new());
    assert!(!stage.seen.notices().contains(&Told::Recovered("a".to_owned())), "its tenant never waited");
}

/// The same where the refusals take longer than a batch may: the time that is up hides no outage, and a tenant that
/// waited and had nothing accepted since has not recovered.
#[tokio::test]
async fn slow_refusals_of_more_subjects_than_a_claim_can_leave_out_back_the_tenant_off() {
    for in_flight in [BOUND * 2, BOUND + 1] {
        let stage = Stage::by_subject();
        let subjects = names(BOUND * 2);
        stage.write_about("a", subjects.iter().map(String::as_str));
        stage.publisher.fail(When::Every, PublishFault::Hang);
        let many = u32::try_from(subjects.len()).unwrap();
        let config = config().initial_batch(many).publish_timeout(Duration::from_secs(2));
        let _running = relay(&stage, in_flight, config).start().unwrap();
        stage.pass(Duration::from_secs(2)).await;
        assert_eq!(stage.seen.back_offs("a").len(), 1, "{in_flight} in flight");
        stage.pass(Duration::from_secs(300)).await;
        let recovered = Told::Recovered("a".to_owned());
        assert!(!stage.seen.notices().contains(&recovered), "{in_flight} in flight");
        let tried = stage.tried().len();
        assert!(tried < 300 / 22 * in_flight + 12 * in_flight, "{tried} publishes, {in_flight} in flight");
        stage.publisher.heal();
        stage.until(|| stage.all_marked()).await;
        stage.broker.assert_in_order();
    }
}

/// The claim is verified between messages, and never beside one: a lost session ends the batch, and marks nothing.
#[tokio::test]
async fn a_lost_session_begins_nothing_more_and_marks_nothing() {
    let stage = Stage::by_subject();
    let subjects = names(12);
    let ids = stage.write_about("a", subjects.iter().map(String::as_str));
    stage.publisher.fail(When::Every, PublishFault::Slow(Duration::from_secs(2)));
    let _running = relay(&stage, 4, config().max_batch_time(Duration::from_secs(600))).start().unwrap();
    stage.pass(Duration::from_secs(3)).await;
    assert_eq!((stage.tried(), stage.table.kill_sessions()), (ids[..8].to_vec(), 1));
    stage.until(|| !stage.seen.back_offs("a").is_empty()).await;
    assert_eq!((stage.tried(), stage.marked("a")), (ids[..8].to_vec(), vec![]));
    stage.until(|| stage.all_marked()).await;
    stage.broker.assert_in_order();
}

/// A stop begins nothing more, waits for all that is in flight, and marks exactly what was accepted.
#[tokio::test]
async fn a_stop_finishes_all_that_is_in_flight_and_marks_it() {
    let stage = Stage::by_subject();
    let subjects = names(9);
    let ids = stage.write_about("a", subjects.iter().map(String::as_str));
    for (place, id) in ids.iter().enumerate() {
        let slow = PublishFault::Slow(Duration::from_millis(100 * (place as u64 + 1)));
        let fault = if place == 1 { PublishFault::Hang } else { slow };
        stage.publisher.fail_times(1, When::Message(*id), fault);
    }
    let running = relay(&stage, 4, config()).start().unwrap();
    stage.pass(Duration::from_millis(50)).await;
    let stopped = tokio::spawn(running.stop());
    stage.pass(Duration::from_secs(10)).await;
    assert!(stopped.is_finished());
    assert_eq!(stage.tried(), ids[..4]);
    assert_eq!(stage.marked("a"), [ids[0], ids[2], ids[3]], "the one that hung was dropped");
    assert_eq!((stage.table.held(), stage.clock.sleepers()), (vec![], 0));
    assert!(stage.seen.notices().iter().all(|told| !matches!(told, Told::SubjectBackedOff { .. })));
    stage.seen.assert_balanced();
}

/// A drain publishes every subject that can be, and names the first that cannot.
#[tokio::test]
async fn a_drain_goes_past_a_refused_subject() {
    let stage = Stage::by_subject();
    let ids = stage.write_about("a", std::iter::repeat_n("stuck", 100).chain(["x", "y", "x"]));
    stage.publisher.fail(When::Message(ids[0]), PublishFault::Refuse(RefusalClass::Refused));
    let relay = relay(&stage, 4, config());
    let report = relay.drain().await.unwrap();
    assert_eq!((report.published, stage.marked("a")), (3, ids[100..].to_vec()));
    let outcome = &report.tenants[&tenant("a")];
    assert!(matches!(outcome, DrainOutcome::Refused { message, .. } if *message == ids[0]), "{outcome:?}");
    assert_eq!(stage.seen.starts(OperationKind::Publish), 4);
    calm().await;
}
