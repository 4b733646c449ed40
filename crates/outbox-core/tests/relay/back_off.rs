//! Who backs off, for how long, and what counts.

use std::time::Duration;

use outbox_core::{RefusalClass, StoreOperation};
use outbox_testkit::{PublishFault, Recorder, StoreFault, When};

use crate::seen::Told;
use crate::stage::{POLL, Stage, calm, config, message, tenant};

fn refuse(class: RefusalClass) -> PublishFault {
    PublishFault::Refuse(class)
}

/// A refused tenant waits longer each time, up to the ceiling; its neighbour does not wait at all.
#[tokio::test]
async fn a_refusal_backs_off_its_own_tenant_only() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Tenant(tenant("a")), refuse(RefusalClass::Refused));
    let _running = stage.relay().start().unwrap();
    for _ in 0..50 {
        let ids = stage.write("b", 3);
        stage.pass(POLL * 60).await;
        assert!(stage.marked("b").ends_with(&ids));
    }
    let waits = stage.seen.back_offs("a");
    assert!((20..=40).contains(&waits.len()), "{} attempts in ten minutes", waits.len());
    for (nth, (failures, wait)) in waits.into_iter().enumerate() {
        assert_eq!(failures as usize, nth + 1);
        let full = (POLL * 2_u32.pow(failures.min(10))).min(Duration::from_secs(30));
        assert!(wait <= full && wait >= full.mul_f64(0.75), "{failures}: {wait:?}");
    }
}

/// The waits that are told are the ones that are kept.
#[tokio::test]
async fn no_publish_happens_before_the_wait_is_over() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Every, refuse(RefusalClass::Refused));
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    calm().await;
    for tries in 1..=6 {
        let (_, wait) = *stage.seen.back_offs("a").last().unwrap();
        stage.pass(wait - Duration::from_millis(1)).await;
        assert_eq!(stage.tried().len(), tries, "too early");
        stage.pass(Duration::from_millis(1)).await;
        assert_eq!(stage.tried().len(), tries + 1, "too late");
    }
}

/// Another relay published the refused message, and something younger is pending: the tenant has nothing to wait for.
/// It goes on at the next probe, and health does not speak of the message any more.
#[tokio::test]
async fn a_tenant_whose_refused_message_is_gone_goes_on_at_the_next_probe() {
    let stage = Stage::new();
    let refused = stage.write("a", 1)[0];
    stage.publisher.fail(When::Message(refused), refuse(RefusalClass::Rejected));
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    stage.until(|| stage.seen.back_offs("a").len() == 8).await;
    let peer = stage.builder(config(), Recorder::new()).build().unwrap();
    let peer = peer.start().unwrap();
    stage.until(|| stage.all_marked()).await;
    peer.stop().await.unwrap();
    let younger = stage.write("a", 1);
    let health = |line: String| assert!(!line.contains("backing off"), "{line}");
    stage.pass(POLL).await;
    health(relay.health().check().await.tenants.get("a").map(ToString::to_string).unwrap_or_default());
    assert_eq!(stage.broker.accepted(&tenant("a")), younger);
    assert_eq!(stage.seen.notices().pop(), Some(Told::Recovered("a".to_owned())));
}

/// A store's error in claim or settle backs the tenant off as a refusal does, and names itself.
#[tokio::test]
async fn a_store_error_in_claim_or_settle_counts_as_a_failure() {
    for operation in [StoreOperation::Claim, StoreOperation::Settle] {
        let stage = Stage::new();
        stage.write("a", 1);
        stage.store.fail(operation, StoreFault::Fail);
        let _running = stage.relay().start().unwrap();
        stage.until(|| stage.seen.back_offs("a").len() == 4).await;
        let failures: Vec<u32> = stage.seen.back_offs("a").iter().map(|(failures, _)| *failures).collect();
        assert_eq!(failures, [1, 2, 3, 4]);
        let Some(Told::BackedOff { message: None, reason, .. }) = stage.seen.notices().pop() else {
            panic!()
        };
        assert_eq!(reason, format!("{operation} failed: it fails on purpose"));
        stage.store.heal();
        stage.until(|| stage.all_marked()).await;
        assert_eq!(stage.seen.notices().pop(), Some(Told::Recovered("a".to_owned())));
    }
}

/// S10: a mark that fails sends no message at every poll; health says why, and turns red.
#[tokio::test]
async fn a_mark_that_fails_sends_few_duplicates_and_shows_in_health() {
    let stage = Stage::new();
    let ids = stage.write("a", 2);
    stage.store.fail(StoreOperation::Settle, StoreFault::Fail);
    let relay = stage.relay();
    let _running = relay.start().unwrap();
    let start = outbox_core::Clock::monotonic(&stage.clock);
    stage.until(|| stage.seen.back_offs("a").len() == 20).await;
    let took = outbox_core::Clock::monotonic(&stage.clock) - start;
    assert!(took > Duration::from_secs(300), "20 cycles in {took:?}");
    assert_eq!(stage.broker.accepted(&tenant("a")).len(), 20 * ids.len());
    let report = relay.health().check().await;
    assert!(!report.is_healthy());
    let line = report.tenants.get("a").unwrap().to_string();
    assert!(line.contains("settle failed: it fails on purpose"), "{line}");
    stage.store.heal();
    stage.until(|| stage.all_marked()).await;
    assert!(relay.health().check().await.is_healthy());
    stage.broker.assert_in_order();
}

/// S18, S19: no class of refusal drops, skips or parks a message, however long it lasts.
#[tokio::test]
async fn no_refusals_class_acts_by_itself() {
    for class in [RefusalClass::Unavailable, RefusalClass::Refused, RefusalClass::Rejected] {
        let stage = Stage::new();
        let ids = stage.write("a", 5);
        stage.publisher.fail(When::Message(ids[1]), refuse(class));
        let _running = stage.relay_with(config().poll_interval(POLL * 50)).start().unwrap();
        stage.pass(Duration::from_secs(2 * 3_600)).await;
        assert_eq!(stage.marked("a"), ids[..1], "{class}");
        stage.publisher.heal();
        stage.pass(Duration::from_secs(31)).await;
        assert_eq!(stage.broker.accepted(&tenant("a")), ids, "{class}");
    }
}

/// S20: ten stops in the middle of a publish are no refusals: the next run starts at once, at attempt one.
#[tokio::test]
async fn what_a_stop_interrupts_is_not_refused() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail(When::Every, PublishFault::Hang);
    let relay = stage.relay_with(config().stop_timeout(Duration::ZERO));
    for nth in 1..=10 {
        let running = relay.start().unwrap();
        calm().await;
        assert_eq!(stage.tried().len(), nth, "it starts at once");
        running.stop().await.unwrap();
    }
    assert_eq!(stage.attempts(), [1; 10]);
    assert_eq!(stage.seen.back_offs("a"), []);
}

/// Attempts count the publishes of one message; the next message starts at one, a failed claim is none.
#[tokio::test]
async fn attempts_belong_to_a_message() {
    let stage = Stage::new();
    let ids = stage.write("a", 3);
    stage.publisher.fail_times(3, When::Message(ids[1]), refuse(RefusalClass::Unavailable));
    stage.store.fail_nth(1, StoreOperation::Claim, StoreFault::Fail);
    stage.store.fail_nth(2, StoreOperation::Claim, StoreFault::Fail);
    stage.store.fail_nth(4, StoreOperation::Claim, StoreFault::Fail);
    let _running = stage.relay().start().unwrap();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.attempts(), [1, 1, 2, 3, 4, 1]);
}

/// A message that another replica got rid of takes its attempts with it.
#[tokio::test]
async fn attempts_at_a_message_that_another_published_are_forgotten() {
    let stage = Stage::new();
    let ids = stage.write("a", 2);
    stage.publisher.fail(When::Every, refuse(RefusalClass::Refused));
    let _running = stage.relay().start().unwrap();
    stage.until(|| stage.tried().len() == 3).await;
    let other = stage.builder(config().initial_batch(1).max_batch(1), Stage::new().broker.clone());
    let drained = other.build().unwrap();
    stage.publisher.heal();
    stage.publisher.fail(When::Message(ids[1]), refuse(RefusalClass::Refused));
    drained.drain().await.unwrap();
    let next = stage.write("a", 1);
    stage.publisher.heal();
    stage.until(|| stage.all_marked()).await;
    assert_eq!(stage.recorder.deliveries().last().map(|last| (last.id, last.attempt)), Some((next[0], 1)));
}

/// A row that cannot be read stops its own tenant, with its number in the reason, until somebody repairs it.
#[tokio::test]
async fn a_hostile_row_stops_its_tenant_only() {
    let stage = Stage::new();
    let before = stage.write("a", 2);
    let hostile = stage.table.append_unreadable(tenant("a"));
    stage.table.append(message("a"));
    let _running = stage.relay().start().unwrap();
    for _ in 0..10 {
        let ids = stage.write("b", 1);
        stage.pass(POLL * 2).await;
        assert!(stage.marked("b").ends_with(&ids));
    }
    assert_eq!(stage.marked("a"), before);
    let reason = stage.seen.last_reason().1;
    assert!(reason.contains(&format!("message {hostile}")), "{reason}");
}
