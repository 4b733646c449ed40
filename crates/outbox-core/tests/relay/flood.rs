//! An outage over many tenants: the log says so in a few lines, of which the first and the last name a tenant.

use std::time::Duration;

use outbox_core::{Publishing, RefusalClass};
use outbox_testkit::{PublishFault, When};

use crate::stage::{Stage, config};
use crate::written::Written;

const TENANTS: usize = 500;

/// The lines that say this; and how many are told without a line of their own.
fn told(lines: &[String], what: &str, more: &str) -> (usize, usize) {
    let singly = lines.iter().filter(|line| line.contains(what) && line.contains("tenant=")).count();
    let of_more = |line: &&String| line.contains(more);
    let counted = lines.iter().filter(of_more).map(|line| {
        line.split_once("more=")
            .and_then(|(_, number)| number.trim().parse::<usize>().ok())
            .expect("a number")
    });
    (singly, counted.sum())
}

/// A broker that is down for all of them, and then is back: each tenant is told of once, by itself or counted, and
/// there is about a line a second.
#[tokio::test]
async fn an_outage_over_many_tenants_is_a_few_lines() {
    let stage = Stage::new();
    let (written, _guard) = Written::collect();
    (0..TENANTS).for_each(|index| drop(stage.write(&format!("tenant-{index}"), 1)));
    stage.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Unavailable));
    let running = stage.relay_with(config().max_back_off(Duration::from_secs(10))).start().unwrap();
    stage.until(|| stage.tried().len() >= TENANTS).await;
    stage.pass(Duration::from_secs(5)).await;
    let lines = written.lines_of(&["WARN", "INFO"]);
    let (singly, counted) = told(&lines, "tenant backs off", "more outbox tenants back off");
    assert_eq!(singly + counted, TENANTS);
    assert!(singly > 20 && lines.len() < TENANTS / 4, "{lines:#?}");
    stage.publisher.heal();
    let begun = outbox_core::Clock::monotonic(&stage.clock);
    stage.until(|| stage.all_marked()).await;
    stage.pass(Duration::from_secs(3)).await;
    running.stop().await.unwrap();
    let lines = written.lines_of(&["WARN", "INFO"]);
    let (singly, counted) = told(&lines, "tenant recovered", "more outbox tenants recovered");
    assert_eq!(singly + counted, TENANTS);
    let seconds = usize::try_from((outbox_core::Clock::monotonic(&stage.clock) - begun).as_secs()).unwrap();
    assert!(lines.len() < TENANTS / 4 + 22 * (seconds + 1), "{} lines in {seconds} s", lines.len());
    assert!(lines.len() < TENANTS / 2, "{} lines", lines.len());
}

/// The same of subjects; what a stop leaves untold is told before the relay says that it stopped.
#[tokio::test]
async fn an_outage_over_many_subjects_is_a_few_lines_and_a_stop_tells_the_rest() {
    let stage = Stage::by_subject();
    let (written, _guard) = Written::collect();
    let subjects: Vec<String> = (0..90).map(|index| format!("subject-{index}")).collect();
    stage.write_about("acme", subjects.iter().map(String::as_str));
    stage.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Unavailable));
    let publishing = Publishing::by_subject(stage.recorder.clone(), 8);
    let running = stage.relay_of(config().initial_batch(100), publishing).start().unwrap();
    stage.until(|| stage.broker.deliveries().is_empty() && stage.tried().len() >= 90).await;
    running.stop().await.unwrap();
    let lines = written.lines_of(&["WARN", "INFO"]);
    let (singly, counted) = told(&lines, "subject is held back", "more outbox subjects are held back");
    assert_eq!((singly, counted), (21, 69), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("relay stopped")), "{lines:#?}");
}
