//! Each rule of fair turns by itself; `model` plays random stories against a model of a few lines.

#![expect(clippy::unchecked_time_subtraction, reason = "a test that subtracts too much has to fail")]

mod model;

use std::time::Duration;

use super::*;
use crate::{StoreError, StoreOperation, Timestamp};

const POLL: Duration = Duration::from_millis(200);
const START: Duration = Duration::from_secs(1_000);

fn config() -> RelayConfig {
    RelayConfig::builder().discover_tenants().build().unwrap()
}

fn tenants() -> Tenants {
    Tenants::new(config(), Pace::Steady, fastrand::Rng::with_seed(7))
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn oldest(names: &[&str]) -> Vec<OldestPending> {
    let one = |name: &&str| {
        OldestPending::new(tenant(name), MessageId::new(1), Timestamp::from_micros(0), Duration::ZERO)
    };
    names.iter().map(one).collect()
}

fn tried(message: i64, attempts: u32) -> Tried {
    Tried { message: MessageId::new(message), attempts }
}

fn refused(settled: usize) -> Sweep {
    Sweep::new(settled, SweepEnd::Refused { tried: tried(1, 1), reason: "no".to_owned() })
}

fn failed(tried: Option<Tried>) -> Sweep {
    let error = StoreError::transient(StoreOperation::Claim, "no");
    Sweep::new(0, SweepEnd::Failed { error, tried })
}

fn clean(settled: usize, full: bool) -> Sweep {
    Sweep::new(settled, SweepEnd::Clean { full, took: Duration::ZERO })
}

fn forgotten(name: &str, recovered: bool) -> Relief {
    Relief { tenant: tenant(name), recovered, forgotten: true, subjects: Vec::new() }
}

fn held() -> Sweep {
    Sweep::new(0, SweepEnd::Held)
}

/// The wait that a failure leads to, and how many failures in a row that are.
fn backed_off(change: Change) -> (u32, Duration) {
    let Change::BackedOff { failures, wait } = change else { panic!("{change:?}") };
    (failures, wait)
}

/// Ends a turn of `a`, which must have had one.
fn end(tenants: &mut Tenants, now: Duration, sweep: &Sweep) -> Change {
    assert_eq!(tenants.next(now).map(|turn| turn.tenant), Some(tenant("a")));
    tenants.finished(now, &tenant("a"), sweep).change
}

/// S21: 2,000 failures in a row are a wait like any other, and one success forgets them all.
#[test]
fn two_thousand_failures_saturate_and_one_success_forgets_them() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    let mut now = START;
    for nth in 1..=2_000 {
        let (failures, wait) = backed_off(end(&mut tenants, now, &refused(0)));
        assert_eq!(failures, nth);
        assert!(wait <= config().max_back_off);
        now = tenants.due().unwrap();
    }
    assert_eq!(end(&mut tenants, now, &clean(1, false)), Change::Recovered);
    tenants.probed(&oldest(&["a"]));
    assert_eq!(backed_off(end(&mut tenants, now, &failed(None))).0, 1);
}

#[test]
fn a_tenant_that_backs_off_has_no_turn_before_its_wait_is_over() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    let (_, wait) = backed_off(end(&mut tenants, START, &refused(0)));
    assert_eq!(tenants.due(), Some(START + wait));
    tenants.probed(&oldest(&["a"]));
    assert_eq!(tenants.next(START + wait - Duration::from_nanos(1)), None);
    assert!(tenants.next(START + wait).is_some());
}

#[test]
fn progress_before_a_refusal_restarts_the_count_at_one() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    for expected in [1, 2, 3] {
        let now = tenants.due().unwrap_or(START);
        assert_eq!(backed_off(end(&mut tenants, now, &refused(0))).0, expected);
    }
    let now = tenants.due().unwrap();
    assert_eq!(backed_off(end(&mut tenants, now, &refused(5))).0, 1);
}

#[test]
fn a_clean_sweep_and_an_empty_one_reset_the_count() {
    for sweep in [clean(3, false), clean(0, false), Sweep::new(3, SweepEnd::OutOfTime)] {
        let mut tenants = tenants();
        tenants.probed(&oldest(&["a"]));
        end(&mut tenants, START, &refused(0));
        let now = tenants.due().unwrap();
        assert_eq!(end(&mut tenants, now, &sweep), Change::Recovered, "{sweep:?}");
        tenants.probed(&oldest(&["a"]));
        assert_eq!(backed_off(end(&mut tenants, now, &refused(0))).0, 1, "{sweep:?}");
    }
}

#[test]
fn a_tenant_found_held_keeps_its_count_and_is_looked_at_again_after_the_jittered_poll() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    end(&mut tenants, START, &refused(0));
    let (mut now, mut waits) = (tenants.due().unwrap(), Vec::new());
    for _ in 0..50 {
        assert_eq!(end(&mut tenants, now, &held()), Change::None);
        let due = tenants.due().unwrap();
        waits.push(due - now);
        now = due;
    }
    assert!(waits.iter().all(|wait| (POLL * 3 / 4..=POLL * 5 / 4).contains(wait)), "{waits:?}");
    waits.dedup();
    assert!(waits.len() > 40, "there is no jitter in {waits:?}");
    assert_eq!(backed_off(end(&mut tenants, now, &refused(0))).0, 2);
}

/// S20: what a stop interrupts is not refused.
#[test]
fn an_interrupted_turn_counts_as_nothing() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    let interrupted = Sweep::new(0, SweepEnd::Interrupted);
    for _ in 0..10 {
        assert_eq!(end(&mut tenants, START, &interrupted), Change::None);
        tenants.probed(&oldest(&["a"]));
    }
    assert_eq!(tenants.next(START).unwrap().tried, None);
}

#[test]
fn full_batches_grow_fourfold_up_to_the_cap_and_a_failure_or_an_empty_sweep_brings_the_first_size_back() {
    for small_again in [refused(0), failed(None), clean(0, false)] {
        let mut tenants = tenants();
        tenants.probed(&oldest(&["a"]));
        let mut sizes = Vec::new();
        for _ in 0..7 {
            let turn = tenants.next(START).unwrap();
            let size = turn.limit.get();
            sizes.push(size);
            tenants.finished(START, &turn.tenant, &clean(size as usize, true));
        }
        assert_eq!(sizes, [32, 128, 512, 1_000, 1_000, 1_000, 1_000]);
        end(&mut tenants, START, &small_again);
        tenants.probed(&oldest(&["a"]));
        let now = tenants.due().unwrap_or(START);
        assert_eq!(tenants.next(now).unwrap().limit.get(), 32, "{small_again:?}");
    }
}

#[test]
fn a_slow_batch_does_not_grow_and_one_out_of_time_shrinks_to_what_it_did() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    let took = config().max_batch_time / 2;
    end(&mut tenants, START, &Sweep::new(32, SweepEnd::Clean { full: true, took }));
    let turn = tenants.next(START).unwrap();
    assert_eq!(turn.limit.get(), 32);
    tenants.finished(START, &turn.tenant, &Sweep::new(5, SweepEnd::OutOfTime));
    assert_eq!(tenants.next(START).unwrap().limit.get(), 5);
}

/// The gap is as long as the longest wait of a replica that found the tenant held: it looks once in there.
#[test]
fn after_32_polls_of_full_batches_there_is_a_gap_for_others() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    let mut now = START;
    for _ in 0..3 {
        for batch in 0..32 {
            end(&mut tenants, now, &clean(1_000, true));
            assert_eq!(tenants.due(), None, "a gap after {batch} polls");
            now += POLL;
        }
        end(&mut tenants, now, &Sweep::new(5, SweepEnd::OutOfTime));
        assert_eq!(tenants.next(now), None, "no gap");
        assert_eq!(tenants.due(), Some(now + POLL * 5 / 4));
        now += POLL * 5 / 4;
    }
}

#[test]
fn a_tenant_absent_from_the_probe_is_forgotten_and_its_failures_with_it() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a", "b"]));
    for _ in 0..2 {
        let turn = tenants.next(START).unwrap();
        let sweep = if turn.tenant == tenant("a") { refused(0) } else { clean(1, false) };
        tenants.finished(START, &turn.tenant, &sweep);
    }
    tenants.probe_begins();
    let gone = tenants.probed(&[]);
    assert_eq!(gone, [forgotten("a", true), forgotten("b", false)]);
    assert_eq!((tenants.due(), tenants.known.len()), (None, 0));
    tenants.probed(&oldest(&["a"]));
    assert_eq!(backed_off(end(&mut tenants, START, &refused(0))).0, 1);
}

/// The probe looked before the row was there that the turn was refused for: its answer cuts no back-off short.
#[test]
fn a_turn_that_ended_after_the_probe_began_outweighs_its_answer() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    tenants.probe_begins();
    let (_, wait) = backed_off(end(&mut tenants, START, &refused(0)));
    assert_eq!(tenants.probed(&[]), []);
    assert_eq!(tenants.due(), Some(START + wait));
    tenants.probe_begins();
    assert_eq!(tenants.probed(&[]), [forgotten("a", true)]);
}

#[test]
fn a_tenant_that_is_swept_or_in_the_queue_is_not_forgotten() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a", "b"]));
    let swept = tenants.next(START).unwrap();
    assert_eq!(tenants.probed(&[]), []);
    tenants.finished(START, &swept.tenant, &clean(1, false));
    assert!(tenants.next(START).is_some(), "the other one still has its turn");
}

/// A tenant whose wait is over has its turn before one with a full batch has its next, also when every place was
/// taken at that moment.
#[test]
fn who_has_waited_long_enough_goes_before_a_full_batch_goes_on() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["b"]));
    assert_eq!(tenants.next(START).map(|turn| turn.tenant), Some(tenant("b")));
    let (_, wait) = backed_off(tenants.finished(START, &tenant("b"), &refused(0)).change);
    tenants.probed(&oldest(&["a", "b"]));
    assert_eq!(tenants.next(START).map(|turn| turn.tenant), Some(tenant("a")));
    let now = START + wait;
    tenants.finished(now, &tenant("a"), &clean(32, true));
    assert_eq!(tenants.next(now).map(|turn| turn.tenant), Some(tenant("b")));
}

/// Its refused message is gone when it stands in the queue again: it has one turn, not two at once.
#[test]
fn a_tenant_in_the_queue_whose_refused_message_is_gone_stands_there_once() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a", "b"]));
    let first = tenants.next(START).unwrap().tenant;
    let (_, wait) = backed_off(tenants.finished(START, &first, &refused(0)).change);
    tenants.probe_begins();
    let now = START + wait;
    assert!(
        tenants.next(now).is_some_and(|turn| turn.tenant != first),
        "the other one, while the first is due"
    );
    let found =
        OldestPending::new(first.clone(), MessageId::new(2), Timestamp::from_micros(0), Duration::ZERO);
    assert!(tenants.probed(&[found])[0].recovered);
    assert_eq!(tenants.next(now).map(|turn| turn.tenant), Some(first));
    assert_eq!(tenants.next(now), None);
}

/// Attempts belong to a message: the next message starts at one, also if another relay published the first.
#[test]
fn what_was_tried_is_remembered_over_held_turns_and_failed_claims_and_forgotten_after_a_clean_one() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    let steps = [
        (refused(0), Some(tried(1, 1))),
        (held(), Some(tried(1, 1))),
        (failed(Some(tried(1, 2))), Some(tried(1, 2))),
        (clean(1, false), None),
    ];
    for (sweep, expected) in steps {
        let now = tenants.due().unwrap_or(START);
        end(&mut tenants, now, &sweep);
        assert_eq!(tenants.known[&tenant("a")].tried, expected, "{sweep:?}");
    }
}

/// Another relay takes the refused message while it holds the tenant: at the next probe the tenant is well again.
#[test]
fn a_tenant_whose_refused_message_another_relay_published_recovers() {
    let mut tenants = tenants();
    tenants.probed(&oldest(&["a"]));
    end(&mut tenants, START, &refused(0));
    let now = tenants.due().unwrap();
    end(&mut tenants, now, &held());
    tenants.probe_begins();
    let later = MessageId::new(9);
    let found = OldestPending::new(tenant("a"), later, Timestamp::from_micros(0), Duration::ZERO);
    assert!(tenants.probed(&[found])[0].recovered);
}

#[test]
fn rounds_start_at_different_tenants() {
    let names = ["a", "b", "c", "d"];
    let first = |seed| {
        let mut tenants = Tenants::new(config(), Pace::Steady, fastrand::Rng::with_seed(seed));
        tenants.probed(&oldest(&names));
        tenants.next(START).unwrap().tenant
    };
    let firsts: HashSet<TenantId> = (0..64).map(first).collect();
    assert_eq!(firsts.len(), names.len());
}
