//! The simulation's own promises: one seed is one story, and worlds are worth judging.

/// No order comes from a hash map, a thread or the machine's clock.
#[test]
fn one_seed_is_one_story() {
    for seed in 0..40 {
        let (one, other) = (sim::run(seed, 300, true), sim::run(seed, 300, true));
        assert!(one.story.len() > 100, "seed {seed} tells {} lines", one.story.len());
        assert_eq!(one, other, "seed {seed}");
    }
}

/// Telling the story changes nothing of it.
#[test]
fn a_world_that_is_told_is_the_same_world() {
    for seed in 0..40 {
        let (told, untold) = (sim::run(seed, 300, true), sim::run(seed, 300, false));
        assert_eq!((told.steps, told.marked), (untold.steps, untold.marked), "seed {seed}");
    }
}

#[test]
fn every_promise_is_kept_in_the_first_worlds() {
    let found = sim::many(0..200, 300);
    assert_eq!((found.broken, found.worlds), (None, 200));
    assert!(found.marked > 2_000, "{} messages were published and marked", found.marked);
}

/// What is to be judged happens: a story that never loses a session or refuses a message proves nothing of it.
#[test]
fn everything_happens_that_is_judged() {
    let stories: Vec<String> = (0..200).flat_map(|seed| sim::run(seed, 300, true).story).collect();
    for what in [
        "publishes",
        "verifies its claim",
        "marks",
        "is dropped",
        "is lost",
        "is killed",
        "is told to stop",
        "is woken",
        "stands still",
        "everything stood still",
        "the answer was lost",
        "the store panicked",
        "the publisher panicked",
        "no answer within the publish deadline",
        "no answer from the store",
        "the answer came after",
        "drops the publish",
        "rolls",
        "the publisher is down",
        "the database is down",
        "ProbeFailing",
        "ProbeRecovered",
        "tells: BackedOff",
        "tells: Recovered",
        "tells: SubjectBackedOff",
        "tells: SubjectRecovered",
        "drain",
        "HeldElsewhere",
        "health of relay",
        "unavailable:",
        "refused:",
        "rejected:",
    ] {
        assert!(stories.iter().any(|line| line.contains(what)), "nothing {what:?} happens");
    }
}
