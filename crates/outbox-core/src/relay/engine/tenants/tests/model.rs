//! Random stories: fair turns, and waits as the model of a few lines says.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[derive(Debug, Clone, Copy)]
enum End {
    Held,
    Clean { full: bool },
    Empty,
    OutOfTime,
    Refused { progress: bool },
    Failed,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A probe finds these tenants, one bit each.
    Probe(u8),
    /// A tenant gets its turn, if one is due.
    Turn,
    /// The turn that has been going on for longest ends.
    End(End),
    Pass(u64),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Held),
        any::<bool>().prop_map(|full| End::Clean { full }),
        Just(End::Empty),
        Just(End::OutOfTime),
        any::<bool>().prop_map(|progress| End::Refused { progress }),
        Just(End::Failed),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => any::<u8>().prop_map(Step::Probe),
        4 => Just(Step::Turn),
        4 => end().prop_map(Step::End),
        2 => (0_u64..1_000).prop_map(Step::Pass),
    ]
}

fn sweep(end: End, limit: usize) -> Sweep {
    match end {
        End::Held => held(),
        End::Clean { full } => clean(if full { limit } else { 1 }, full),
        End::Empty => clean(0, false),
        End::OutOfTime => Sweep::new(1, SweepEnd::OutOfTime),
        End::Refused { progress } => refused(usize::from(progress)),
        End::Failed => failed(None),
    }
}

/// What the model knows of a tenant that the schedule has not forgotten.
#[derive(Debug, Default)]
struct Known {
    failures: u32,
    /// Not before then.
    until: Duration,
    /// Turns that others had since this one was due.
    passed_over: BTreeMap<TenantId, u32>,
    due: bool,
    swept: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// A due tenant waits for at most one turn of each other; nobody has two turns at once or one before its
    /// wait is over; failures are counted as the model counts them.
    #[test]
    fn turns_are_fair_and_waits_are_kept(seed: u64, steps in prop::collection::vec(step(), 1..200)) {
        let mut tenants = Tenants::new(config(), Pace::Steady, fastrand::Rng::with_seed(seed));
        let (mut now, mut known, mut going) = (START, BTreeMap::<TenantId, Known>::new(), VecDeque::new());
        for step in steps {
            match step {
                Step::Pass(millis) => now += Duration::from_millis(millis),
                Step::Probe(bits) => {
                    let found = NAMES.iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0);
                    let names: Vec<&str> = found.map(|(_, name)| *name).collect();
                    tenants.probe_begins();
                    for Relief { tenant: id, recovered: failed, .. } in tenants.probed(&oldest(&names)) {
                        let one = known.remove(&id).unwrap_or_default();
                        prop_assert!(!one.swept && !names.contains(&id.as_str()), "{id} is forgotten");
                        prop_assert_eq!(failed, one.failures > 0);
                    }
                    for name in names {
                        let one = known.entry(tenant(name)).or_default();
                        one.due |= !one.swept;
                    }
                }
                Step::Turn => {
                    let Some(turn) = tenants.next(now) else {
                        let waiting = known.iter().find(|(_, one)| one.due && !one.swept && one.until <= now);
                        prop_assert!(waiting.is_none(), "{waiting:?} is due and gets no turn");
                        continue;
                    };
                    let one = known.get_mut(&turn.tenant).unwrap();
                    prop_assert!(!one.swept, "two turns at once");
                    prop_assert!(one.until <= now, "a turn before its time");
                    (one.swept, one.due) = (true, false);
                    one.passed_over.clear();
                    for (id, other) in known.iter_mut().filter(|(_, other)| !other.swept) {
                        if other.due && other.until <= now {
                            let turns = other.passed_over.entry(turn.tenant.clone()).or_default();
                            *turns += 1;
                            prop_assert!(*turns <= 1, "{id} waits while {} has two turns", turn.tenant);
                        }
                    }
                    going.push_back(turn);
                }
                Step::End(end) => {
                    let Some(turn) = going.pop_front() else { continue };
                    let ended = sweep(end, turn.limit.get() as usize);
                    let change = tenants.finished(now, &turn.tenant, &ended).change;
                    let one = known.get_mut(&turn.tenant).unwrap();
                    one.swept = false;
                    one.failures = match end {
                        End::Held => one.failures,
                        End::Refused { progress: true } => 1,
                        End::Refused { .. } | End::Failed => one.failures + 1,
                        _ => 0,
                    };
                    if let Change::BackedOff { failures, wait } = change {
                        prop_assert_eq!(failures, one.failures);
                        let full = Pace::Steady.back_off(&config(), failures, 0.0);
                        prop_assert!(wait <= full && wait >= full.mul_f64(0.75));
                    }
                    let place = tenants.known[&turn.tenant].place;
                    one.due = matches!(place, Place::Ready | Place::Waiting(_));
                    one.until = if let Place::Waiting(until) = place { until } else { now };
                    let again = matches!(end, End::Clean { full: true } | End::OutOfTime);
                    let waits = matches!(end, End::Held | End::Refused { .. } | End::Failed);
                    prop_assert_eq!(one.due, again || waits);
                    prop_assert!(!waits || one.until > now);
                    prop_assert_eq!(tenants.known[&turn.tenant].failures, one.failures);
                }
            }
            // The queue of times has the tenants that wait for a time, and no others.
            let waiting = tenants.known.values().filter(|one| matches!(one.place, Place::Waiting(_))).count();
            prop_assert_eq!(tenants.waiting.len(), waiting);
        }
    }
}
