//! What a drain does.

use super::*;

/// A drain probes once and tries nothing twice; it says nothing, whatever happens, but in its report.
#[test]
fn a_drain_is_silent_and_tries_nothing_twice() {
    let mut stage = Stage::drain();
    let effects = stage.after(found(&[("a", 1), ("b", 1)]));
    assert_eq!(effects.len(), 2, "{effects:?}");
    let of_a = effects.iter().position(|effect| effect.ends_with("of a")).unwrap() as u64 + 1;
    assert_eq!(stage.end(of_a, refused(1)), [""; 0]);
    assert_eq!((stage.due, stage.engine.is_over()), (None, false), "nobody waits for a time");
    assert_eq!(stage.after(Event::Woken), [""; 0]);
    assert_eq!(stage.end(3 - of_a, clean(32, true)), ["turn 3 of b"]);
    assert_eq!(stage.end(3, clean(2, false)), [""; 0]);
    assert!(stage.engine.is_over());
    let report = stage.engine.end().unwrap();
    assert_eq!(report.published, 34);
    let (message, reason) = (MessageId::new(1), "refused".to_owned());
    assert_eq!(report.tenants[&tenant("a")], DrainOutcome::Refused { message, reason });
    assert_eq!([&report.tenants[&tenant("b")], &report.tenants[&tenant("c")]], [&DrainOutcome::Empty; 2]);
}

/// A stop before the probe's answer: a drain does not call a tenant empty that nobody looked at.
#[test]
fn a_drain_that_is_stopped_before_it_looked_says_so() {
    let mut stage = Stage::drain();
    assert_eq!(stage.after(Event::Stop), [""; 0]);
    assert_eq!(stage.after(found(&[])), [""; 0]);
    let report = stage.engine.end().unwrap();
    assert!(report.tenants.values().all(|outcome| *outcome == DrainOutcome::Interrupted), "{report:?}");
    assert_eq!((report.tenants.len(), report.is_complete()), (3, false));
}

/// However long its batches are full, a drain leaves no gap: it is not to wait for anything.
#[test]
fn a_drain_leaves_no_gap() {
    let mut stage = Stage::drain();
    let _ = stage.after(found(&[("a", 1)]));
    for turn in 1..200 {
        stage.now += POLL;
        assert_eq!(stage.end(turn, clean(32, true)), [format!("turn {} of a", turn + 1)]);
    }
}

/// It ends at a failed probe, and at a turn that dies.
#[test]
fn a_drain_that_cannot_go_on_is_an_error() {
    let mut stage = Stage::drain();
    assert_eq!(stage.after(unreachable()), [""; 0]);
    assert!(stage.engine.is_over());
    assert!(matches!(stage.engine.end(), Err(RelayError::Store(_))));

    let mut stage = Stage::drain();
    let _ = stage.after(found(&[("a", 1), ("b", 1)]));
    let died = RelayError::Died { reason: "a fault".to_owned() };
    assert_eq!(stage.after(Event::TurnDied(TurnId(1), died)), [""; 0]);
    assert!(stage.engine.is_over());
    assert!(matches!(stage.engine.end(), Err(RelayError::Died { .. })));
}
