//! Events in, effects out: what a relay and a drain do, step by step, without a store, a publisher or a clock.

use std::time::Duration;

use super::*;
use crate::relay::turn::{Refusal, Tried};
use crate::{OldestPending, RefusalClass, Timestamp};

mod drain;

const POLL: Duration = Duration::from_millis(200);
const START: Duration = Duration::from_secs(1_000);

/// An engine, and the time that it is.
struct Stage {
    engine: Engine,
    now: Duration,
    due: Option<Duration>,
}

fn config() -> RelayConfig {
    RelayConfig::builder().tenants(["a", "b", "c"]).build().unwrap()
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn found(tenants: &[(&str, i64)]) -> Event {
    let one = |(name, id): &(&str, i64)| {
        OldestPending::new(tenant(name), MessageId::new(*id), Timestamp::from_micros(0), Duration::ZERO)
    };
    Event::Probed(Ok(tenants.iter().map(one).collect::<Vec<_>>().into()))
}

fn answered_by(server: Option<&str>) -> Event {
    let server = server.map(str::to_owned);
    Event::Probed(Ok(Probed { server, ..Probed::default() }))
}

fn unreachable() -> Event {
    Event::Probed(Err(StoreError::transient(StoreOperation::Probe, "no")))
}

fn refused(message: i64) -> Sweep {
    let tried = Tried { message: MessageId::new(message), attempts: 1 };
    Sweep::nothing(SweepEnd::Refused { tried, reason: RefusalClass::Refused.to_string() })
}

fn clean(settled: usize, full: bool) -> Sweep {
    Sweep::new(settled, SweepEnd::Clean { full, took: Duration::ZERO })
}

impl Stage {
    fn new(engine: impl FnOnce(RelayConfig, usize, Duration, fastrand::Rng) -> Engine) -> Self {
        let engine = engine(config(), 2, START, fastrand::Rng::with_seed(7));
        Self { engine, now: START, due: None }
    }

    /// A relay whose first probe is under way.
    fn relay() -> Self {
        let mut stage = Self::new(Engine::new);
        assert_eq!(stage.after(Event::Due), ["probe"]);
        stage
    }

    fn drain() -> Self {
        let mut stage = Self::new(Engine::draining);
        assert_eq!(stage.after(Event::Due), ["probe"]);
        stage
    }

    /// What follows from an event, in words.
    fn after(&mut self, event: Event) -> Vec<String> {
        let Step { effects, due } = self.engine.handle(event, self.now);
        self.due = due;
        effects.iter().map(in_words).collect()
    }

    /// What follows when time alone makes something due.
    fn when_due(&mut self) -> Vec<String> {
        self.now = self.due.expect("something is due some time");
        self.after(Event::Due)
    }

    /// What follows when the turn of this number ends.
    fn end(&mut self, turn: u64, sweep: Sweep) -> Vec<String> {
        self.after(Event::TurnEnded(TurnId(turn), vec![sweep]))
    }
}

fn in_words(effect: &Effect) -> String {
    match effect {
        Effect::Probe => "probe".to_owned(),
        Effect::Turn(turn) => {
            let members: Vec<&str> = turn.members.iter().map(|member| member.tenant.as_str()).collect();
            format!("turn {} of {}", turn.id.0, members.join(" and "))
        }
        Effect::Status(tenant, state) => match state {
            TenantState::Idle => format!("{tenant} is idle"),
            TenantState::Sweeping => format!("{tenant} is swept"),
            TenantState::HeldElsewhere => format!("{tenant} is held"),
            TenantState::BackingOff { failures, .. } => format!("{tenant} waits {failures}"),
        },
        Effect::Held(tenant, subjects) => {
            let subjects: Vec<&str> = subjects.iter().map(|held| &*held.subject_id).collect();
            format!("{tenant} holds {}", subjects.join(" and "))
        }
        Effect::Tell(news) => match news {
            News::BackedOff { tenant, failures, .. } => format!("told: {tenant} backs off {failures}"),
            News::Recovered { tenant } => format!("told: {tenant} recovered"),
            News::SubjectBackedOff { tenant, subject } => {
                format!("told: {tenant} holds {} back {}", subject.subject_id, subject.failures)
            }
            News::SubjectRecovered { tenant, subject } => format!("told: {subject} of {tenant} recovered"),
            News::ProbesFail { .. } => "told: probes fail".to_owned(),
            News::ProbesRecovered => "told: probes succeed".to_owned(),
            News::AnotherServer => "told: another server".to_owned(),
        },
    }
}

#[test]
fn a_relay_probes_at_once_and_at_every_poll() {
    let mut stage = Stage::relay();
    assert_eq!((stage.due, stage.after(found(&[]))), (None, vec![]));
    assert_eq!(stage.due, Some(START + POLL));
    assert_eq!(stage.when_due(), ["probe"]);
    assert_eq!(stage.due, None, "one at a time");
}

/// A fail-over is told of once, also where the first answers after it failed, or did not say who answers.
#[test]
fn another_server_is_told_of_once() {
    let mut stage = Stage::relay();
    for (server, told) in [
        (None, vec![]),
        (Some("one"), vec![]),
        (Some("one"), vec![]),
        (None, vec![]),
        (Some("two"), vec!["told: another server"]),
        (Some("two"), vec![]),
    ] {
        assert_eq!(stage.after(answered_by(server)), told, "{server:?}");
        assert_eq!(stage.when_due(), ["probe"]);
    }
    assert_eq!(stage.after(unreachable()), ["told: probes fail"]);
    assert_eq!(stage.when_due(), ["probe"]);
    assert_eq!(stage.after(answered_by(Some("one"))), ["told: probes succeed", "told: another server"]);
}

#[test]
fn a_tenant_with_something_gets_a_turn_and_is_idle_after_it() {
    let mut stage = Stage::relay();
    assert_eq!(stage.after(found(&[("a", 1)])), ["a is swept", "turn 1 of a"]);
    assert_eq!(stage.end(1, clean(1, false)), ["a is idle"]);
}

/// No more turns at once than the concurrency; the next one waits for a place and for no time.
#[test]
fn so_many_turns_at_once_as_the_concurrency_says() {
    let mut stage = Stage::relay();
    let effects = stage.after(found(&[("a", 1), ("b", 2), ("c", 3)]));
    assert_eq!(effects.iter().filter(|effect| effect.starts_with("turn")).count(), 2, "{effects:?}");
    let effects = stage.end(1, clean(1, false));
    assert!(effects.iter().any(|effect| effect.starts_with("turn 3 of")), "{effects:?}");
}

#[test]
fn a_wake_during_a_probe_causes_another_probe() {
    let mut stage = Stage::relay();
    assert_eq!(stage.after(Event::Woken), [""; 0]);
    assert_eq!(stage.after(found(&[])), ["probe"]);
    assert_eq!(stage.after(found(&[])), [""; 0], "one wake is one probe");
}

/// What a wake told of may have been committed after the turn under way had read.
#[test]
fn a_wake_during_a_turn_causes_another_probe_at_its_end() {
    let mut stage = Stage::relay();
    let _ = stage.after(found(&[("a", 1)]));
    assert_eq!(stage.after(Event::Woken), ["probe"]);
    assert_eq!(stage.after(found(&[("a", 1)])), [""; 0]);
    assert_eq!(stage.end(1, clean(1, false)), ["a is idle", "probe"]);
}

#[test]
fn failing_probes_rest_ever_longer_are_told_once_and_no_wake_cuts_a_rest_short() {
    let mut stage = Stage::relay();
    assert_eq!(stage.after(unreachable()), ["told: probes fail"]);
    let mut rests = Vec::new();
    for _ in 0..8 {
        assert_eq!(stage.after(Event::Woken), [""; 0], "a wake cuts no rest short");
        rests.push(stage.due.unwrap().saturating_sub(stage.now));
        assert_eq!(stage.when_due(), ["probe"]);
        assert_eq!(stage.after(unreachable()), [""; 0]);
    }
    assert!(rests[0] >= POLL * 2 * 3 / 4 && rests[7] <= Duration::from_secs(5), "{rests:?}");
    assert_eq!(stage.when_due(), ["probe"]);
    assert_eq!(stage.after(found(&[])), ["told: probes succeed"]);
}

/// Health knows of a change when an observer is told of it.
#[test]
fn a_status_changes_before_its_news_are_told() {
    let mut stage = Stage::relay();
    let _ = stage.after(found(&[("a", 1)]));
    assert_eq!(stage.end(1, refused(1)), ["a waits 1", "told: a backs off 1"]);
    let due = stage.due;
    stage.now = due.unwrap();
    while !stage.after(Event::Due).iter().any(|effect| effect == "turn 2 of a") {
        let _ = stage.after(found(&[("a", 1)]));
        stage.now = stage.due.unwrap();
    }
    assert_eq!(stage.end(2, clean(1, false))[..2], ["a is idle", "told: a recovered"]);
}

/// Another relay published the refused message, or somebody deleted it: what is pending is younger.
#[test]
fn a_tenant_whose_refused_message_is_gone_is_well_again_at_the_next_probe() {
    let mut stage = Stage::relay();
    let _ = stage.after(found(&[("a", 1)]));
    let _ = stage.end(1, refused(1));
    assert_eq!(stage.when_due(), ["probe"]);
    assert_eq!(stage.after(found(&[("a", 1)])), [""; 0], "it is pending yet");
    assert_eq!(stage.after(Event::Woken), ["probe"]);
    let effects = stage.after(found(&[("a", 2)]));
    assert_eq!(effects, ["a is idle", "told: a recovered", "a is swept", "turn 2 of a"]);
}

/// The same for a subject that waits alone.
#[test]
fn a_subject_whose_refused_message_is_gone_is_well_again_at_the_next_probe() {
    let mut stage = Stage::relay();
    let _ = stage.after(found(&[("a", 1)]));
    let tried = Tried { message: MessageId::new(1), attempts: 1 };
    let refusal = Refusal { subject: "s".to_owned(), tried, reason: "no".to_owned(), progress: false };
    let sweep = Sweep { refusals: vec![refusal], ..clean(1, false) };
    assert_eq!(stage.end(1, sweep), ["a holds s", "told: a holds s back 1", "a is idle"]);
    assert_eq!(stage.when_due(), ["probe"]);
    let effects = stage.after(found(&[("a", 2)]));
    assert_eq!(effects[..2], ["a holds ", "told: s of a recovered"]);
}

/// A turn that ended while a probe was under way knows more than its answer.
#[test]
fn an_older_probe_relieves_nobody() {
    let mut stage = Stage::relay();
    let _ = stage.after(found(&[("a", 1)]));
    let _ = stage.after(Event::Woken);
    let _ = stage.end(1, refused(1));
    assert_eq!(stage.after(found(&[("a", 2)])), ["probe"]);
    assert_eq!(stage.after(found(&[]))[..2], ["a is idle", "a holds "]);
}

#[test]
fn who_is_forgotten_is_told_in_the_order_of_the_names() {
    let mut stage = Stage::relay();
    let _ = stage.after(found(&[("c", 1), ("b", 1)]));
    let (_, _) = (stage.end(1, refused(1)), stage.end(2, refused(1)));
    assert_eq!(stage.when_due(), ["probe"]);
    let effects = stage.after(found(&[]));
    let told: Vec<&String> = effects.iter().filter(|effect| effect.starts_with("told")).collect();
    assert_eq!(told, ["told: b recovered", "told: c recovered"]);
}

/// After a stop nothing is begun; what is under way is waited for, and the relay is over then.
#[test]
fn a_stop_begins_nothing_and_ends_with_what_is_under_way() {
    let mut stage = Stage::relay();
    let _ = stage.after(found(&[("a", 1), ("b", 1), ("c", 1)]));
    let _ = stage.after(Event::Woken);
    assert_eq!(stage.after(Event::Stop), [""; 0]);
    assert_eq!(stage.after(Event::Due), [""; 0]);
    assert_eq!((stage.due, stage.engine.is_over()), (None, false));
    assert_eq!(stage.end(1, clean(32, true)).len(), 1, "no other turn");
    let _ = stage.end(2, clean(1, false));
    assert!(!stage.engine.is_over(), "the probe");
    assert_eq!(stage.after(found(&[("a", 1)])), [""; 0], "its answer concerns nobody any more");
    assert!(stage.engine.is_over());
}

/// A turn whose task dies is a failure of each of its members.
#[test]
fn a_turn_that_dies_backs_its_tenant_off() {
    let mut stage = Stage::relay();
    let _ = stage.after(found(&[("a", 1)]));
    let died = RelayError::Died { reason: "a fault".to_owned() };
    assert_eq!(stage.after(Event::TurnDied(TurnId(1), died)), ["a waits 1", "told: a backs off 1"]);
}

/// Two engines with one seed do the same, whatever hash maps they keep.
#[test]
fn one_seed_is_one_story() {
    let story = || {
        let mut stage = Stage::relay();
        let mut told = stage.after(found(&[("a", 1), ("b", 1), ("c", 1)]));
        for turn in 1..40 {
            let sweep = if turn % 3 == 0 { refused(1) } else { clean(32, turn % 2 == 0) };
            told.extend(stage.end(turn, sweep));
            if let Some(due) = stage.due {
                stage.now = due;
                told.extend(stage.after(Event::Due));
            }
            told.extend(stage.after(found(&[("a", 1), ("c", 1)])));
        }
        told
    };
    assert_eq!(story(), story());
}
