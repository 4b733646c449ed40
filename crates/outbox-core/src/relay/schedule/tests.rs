//! Each rule of the schedule by itself; `model` plays random stories against a model of a few lines.

#![expect(clippy::unchecked_time_subtraction, reason = "a test that subtracts too much has to fail")]

mod model;

use std::time::Duration;

use super::*;
use crate::{MessageId, StoreError, StoreOperation, Timestamp};

const POLL: Duration = Duration::from_millis(200);
const START: Duration = Duration::from_secs(1_000);

fn config() -> RelayConfig {
    RelayConfig::builder().discover_tenants().build().unwrap()
}

fn schedule() -> Schedule {
    Schedule::new(config(), fastrand::Rng::with_seed(7))
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

fn forgotten(name: &str, failed: bool) -> Forgotten {
    Forgotten { tenant: tenant(name), failed, subjects: Vec::new() }
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
fn end(schedule: &mut Schedule, now: Duration, sweep: &Sweep) -> Change {
    assert_eq!(schedule.next_turn(now).map(|turn| turn.tenant), Some(tenant("a")));
    schedule.finished(now, &tenant("a"), sweep)
}

#[test]
fn the_nth_failure_waits_poll_times_two_to_the_n_less_a_quarter_at_most_and_never_above_the_ceiling() {
    let ceiling = config().max_back_off;
    for failures in 1..=2_000 {
        let full = POLL.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX)).min(ceiling);
        assert_eq!(back_off(&config(), failures, 0.0), full);
        assert_eq!(back_off(&config(), failures, 1.0), full.mul_f64(0.75));
    }
    assert_eq!(back_off(&config(), 1, 0.0), POLL * 2);
    assert_eq!(back_off(&config(), u32::MAX, 0.0), ceiling);
}

#[test]
fn a_poll_longer_than_the_ceiling_is_the_ceiling() {
    let poll = Duration::from_secs(60);
    let config = RelayConfig::builder().tenants(["a"]).poll_interval(poll).build().unwrap();
    assert_eq!(back_off(&config, 5, 0.0), poll);
}

/// S21: 2,000 failures in a row are a wait like any other, and one success forgets them all.
#[test]
fn two_thousand_failures_saturate_and_one_success_forgets_them() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    let mut now = START;
    for nth in 1..=2_000 {
        let (failures, wait) = backed_off(end(&mut schedule, now, &refused(0)));
        assert_eq!(failures, nth);
        assert!(wait <= config().max_back_off);
        now = schedule.next_due().unwrap();
    }
    assert_eq!(end(&mut schedule, now, &clean(1, false)), Change::Recovered);
    schedule.probed(&oldest(&["a"]));
    assert_eq!(backed_off(end(&mut schedule, now, &failed(None))).0, 1);
}

#[test]
fn a_tenant_that_backs_off_has_no_turn_before_its_wait_is_over() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    let (_, wait) = backed_off(end(&mut schedule, START, &refused(0)));
    assert_eq!(schedule.next_due(), Some(START + wait));
    schedule.probed(&oldest(&["a"]));
    assert_eq!(schedule.next_turn(START + wait - Duration::from_nanos(1)), None);
    assert!(schedule.next_turn(START + wait).is_some());
}

#[test]
fn progress_before_a_refusal_restarts_the_count_at_one() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    for expected in [1, 2, 3] {
        let now = schedule.next_due().unwrap_or(START);
        assert_eq!(backed_off(end(&mut schedule, now, &refused(0))).0, expected);
    }
    let now = schedule.next_due().unwrap();
    assert_eq!(backed_off(end(&mut schedule, now, &refused(5))).0, 1);
}

#[test]
fn a_clean_sweep_and_an_empty_one_reset_the_count() {
    for sweep in [clean(3, false), clean(0, false), Sweep::new(3, SweepEnd::OutOfTime)] {
        let mut schedule = schedule();
        schedule.probed(&oldest(&["a"]));
        end(&mut schedule, START, &refused(0));
        let now = schedule.next_due().unwrap();
        assert_eq!(end(&mut schedule, now, &sweep), Change::Recovered, "{sweep:?}");
        schedule.probed(&oldest(&["a"]));
        assert_eq!(backed_off(end(&mut schedule, now, &refused(0))).0, 1, "{sweep:?}");
    }
}

#[test]
fn a_tenant_found_held_keeps_its_count_and_is_looked_at_again_after_the_jittered_poll() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    end(&mut schedule, START, &refused(0));
    let (mut now, mut waits) = (schedule.next_due().unwrap(), Vec::new());
    for _ in 0..50 {
        assert_eq!(end(&mut schedule, now, &held()), Change::None);
        let due = schedule.next_due().unwrap();
        waits.push(due - now);
        now = due;
    }
    assert!(waits.iter().all(|wait| (POLL * 3 / 4..=POLL * 5 / 4).contains(wait)), "{waits:?}");
    waits.dedup();
    assert!(waits.len() > 40, "there is no jitter in {waits:?}");
    assert_eq!(backed_off(end(&mut schedule, now, &refused(0))).0, 2);
}

/// S20: what a stop interrupts is not refused.
#[test]
fn an_interrupted_turn_counts_as_nothing() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    let interrupted = Sweep::new(0, SweepEnd::Interrupted);
    for _ in 0..10 {
        assert_eq!(end(&mut schedule, START, &interrupted), Change::None);
        schedule.probed(&oldest(&["a"]));
    }
    assert_eq!(schedule.next_turn(START).unwrap().tried, None);
}

#[test]
fn full_batches_grow_fourfold_up_to_the_cap_and_a_failure_or_an_empty_sweep_brings_the_first_size_back() {
    for small_again in [refused(0), failed(None), clean(0, false)] {
        let mut schedule = schedule();
        schedule.probed(&oldest(&["a"]));
        let mut sizes = Vec::new();
        for _ in 0..7 {
            let turn = schedule.next_turn(START).unwrap();
            let size = turn.limit.get();
            sizes.push(size);
            schedule.finished(START, &turn.tenant, &clean(size as usize, true));
        }
        assert_eq!(sizes, [32, 128, 512, 1_000, 1_000, 1_000, 1_000]);
        end(&mut schedule, START, &small_again);
        schedule.probed(&oldest(&["a"]));
        let now = schedule.next_due().unwrap_or(START);
        assert_eq!(schedule.next_turn(now).unwrap().limit.get(), 32, "{small_again:?}");
    }
}

#[test]
fn a_slow_batch_does_not_grow_and_one_out_of_time_shrinks_to_what_it_did() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    let took = config().max_batch_time / 2;
    end(&mut schedule, START, &Sweep::new(32, SweepEnd::Clean { full: true, took }));
    let turn = schedule.next_turn(START).unwrap();
    assert_eq!(turn.limit.get(), 32);
    schedule.finished(START, &turn.tenant, &Sweep::new(5, SweepEnd::OutOfTime));
    assert_eq!(schedule.next_turn(START).unwrap().limit.get(), 5);
}

/// The gap is as long as the longest wait of a replica that found the tenant held: it looks once in there.
#[test]
fn after_32_polls_of_full_batches_there_is_a_gap_for_others() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    let mut now = START;
    for _ in 0..3 {
        for batch in 0..32 {
            end(&mut schedule, now, &clean(1_000, true));
            assert_eq!(schedule.next_due(), None, "a gap after {batch} polls");
            now += POLL;
        }
        end(&mut schedule, now, &Sweep::new(5, SweepEnd::OutOfTime));
        assert_eq!(schedule.next_turn(now), None, "no gap");
        assert_eq!(schedule.next_due(), Some(now + POLL * 5 / 4));
        now += POLL * 5 / 4;
    }
}

#[test]
fn a_tenant_absent_from_the_probe_is_forgotten_and_its_failures_with_it() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a", "b"]));
    for _ in 0..2 {
        let turn = schedule.next_turn(START).unwrap();
        let sweep = if turn.tenant == tenant("a") { refused(0) } else { clean(1, false) };
        schedule.finished(START, &turn.tenant, &sweep);
    }
    schedule.probe_begins();
    let mut gone = schedule.probed(&[]);
    gone.sort_by(|one, other| one.tenant.cmp(&other.tenant));
    assert_eq!(gone, [forgotten("a", true), forgotten("b", false)]);
    assert_eq!((schedule.next_due(), schedule.tenants.len()), (None, 0));
    schedule.probed(&oldest(&["a"]));
    assert_eq!(backed_off(end(&mut schedule, START, &refused(0))).0, 1);
}

/// The probe looked before the row was there that the turn was refused for: its answer cuts no back-off short.
#[test]
fn a_turn_that_ended_after_the_probe_began_outweighs_its_answer() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    schedule.probe_begins();
    let (_, wait) = backed_off(end(&mut schedule, START, &refused(0)));
    assert_eq!(schedule.probed(&[]), []);
    assert_eq!(schedule.next_due(), Some(START + wait));
    schedule.probe_begins();
    assert_eq!(schedule.probed(&[]), [forgotten("a", true)]);
}

#[test]
fn a_tenant_that_is_swept_or_in_the_queue_is_not_forgotten() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a", "b"]));
    let swept = schedule.next_turn(START).unwrap();
    assert_eq!(schedule.probed(&[]), []);
    schedule.finished(START, &swept.tenant, &clean(1, false));
    assert!(schedule.next_turn(START).is_some(), "the other one still has its turn");
}

/// Attempts belong to a message: another one starts at one, whoever published the first.
#[test]
fn what_was_tried_is_remembered_over_held_turns_and_failed_claims_and_forgotten_after_a_clean_one() {
    let mut schedule = schedule();
    schedule.probed(&oldest(&["a"]));
    let steps = [
        (refused(0), Some(tried(1, 1))),
        (held(), Some(tried(1, 1))),
        (failed(Some(tried(1, 2))), Some(tried(1, 2))),
        (clean(1, false), None),
    ];
    for (sweep, expected) in steps {
        let now = schedule.next_due().unwrap_or(START);
        end(&mut schedule, now, &sweep);
        assert_eq!(schedule.tenants[&tenant("a")].tried, expected, "{sweep:?}");
    }
}

#[test]
fn rounds_start_at_different_tenants() {
    let names = ["a", "b", "c", "d"];
    let first = |seed| {
        let mut schedule = Schedule::new(config(), fastrand::Rng::with_seed(seed));
        schedule.probed(&oldest(&names));
        schedule.next_turn(START).unwrap().tenant
    };
    let firsts: HashSet<TenantId> = (0..64).map(first).collect();
    assert_eq!(firsts.len(), names.len());
}
