//! Our names against OpenTelemetry's conventions, and against the documentation.

use std::collections::BTreeSet;

use opentelemetry_semantic_conventions::{attribute, metric};
use outbox_otel::names;

const DOCS: &str = include_str!("../../../../docs/observe.md");

/// What begins with `messaging.` or `error.` is a constant of the conventions; all else begins with `outbox.`.
#[test]
fn names_are_those_of_the_conventions() {
    assert_eq!(names::OPERATION_DURATION, metric::MESSAGING_CLIENT_OPERATION_DURATION);
    assert_eq!(names::SENT_MESSAGES, metric::MESSAGING_CLIENT_SENT_MESSAGES);
    assert_eq!(names::OPERATION_NAME, attribute::MESSAGING_OPERATION_NAME);
    assert_eq!(names::OPERATION_TYPE, attribute::MESSAGING_OPERATION_TYPE);
    assert_eq!(names::SYSTEM, attribute::MESSAGING_SYSTEM);
    assert_eq!(names::DESTINATION, attribute::MESSAGING_DESTINATION_NAME);
    assert_eq!(names::ERROR_TYPE, attribute::ERROR_TYPE);
    assert_eq!(names::MESSAGE_ID, attribute::MESSAGING_MESSAGE_ID);
    assert_eq!(names::BODY_SIZE, attribute::MESSAGING_MESSAGE_BODY_SIZE);
    let checked = [
        names::OPERATION_DURATION,
        names::SENT_MESSAGES,
        names::OPERATION_NAME,
        names::OPERATION_TYPE,
        names::SYSTEM,
        names::DESTINATION,
        names::ERROR_TYPE,
        names::MESSAGE_ID,
        names::BODY_SIZE,
    ];
    let metrics = names::METRICS.iter().map(|metric| metric.name);
    let attributes = names::METRIC_ATTRIBUTES.iter().chain(names::SPAN_ONLY_ATTRIBUTES).copied();
    for name in metrics.chain(attributes) {
        assert!(checked.contains(&name) || name.starts_with("outbox."), "{name}");
    }
}

/// A metric's attributes are among those with few values; none of them is one of a span's own.
#[test]
fn bounded_and_unbounded_attributes_are_apart() {
    let bounded: BTreeSet<&str> = names::METRIC_ATTRIBUTES.iter().copied().collect();
    let unbounded: BTreeSet<&str> = names::SPAN_ONLY_ATTRIBUTES.iter().copied().collect();
    assert!(bounded.is_disjoint(&unbounded));
    for metric in names::METRICS {
        assert!(metric.attributes.iter().all(|name| bounded.contains(name)), "{}", metric.name);
    }
}

/// The tables of `docs/observe.md` are the tables of the code, row by row.
#[test]
fn the_documented_tables_are_those_of_the_code() {
    let list = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        if names.is_empty() { "–".to_owned() } else { names.join(", ") }
    };
    let metrics: Vec<String> = names::METRICS
        .iter()
        .map(|metric| {
            let names::Metric { name, instrument, unit, meaning, attributes, .. } = metric;
            format!("| `{name}` | {instrument} | `{unit}` | {meaning} | {} |", list(attributes))
        })
        .collect();
    let errors: Vec<String> =
        names::ERROR_TYPES.iter().map(|(name, meaning)| format!("| `{name}` | {meaning} |")).collect();
    assert_eq!(table("| metric |"), metrics, "\n{}\n", metrics.join("\n"));
    assert_eq!(table("| `error.type` |"), errors, "\n{}\n", errors.join("\n"));
    for name in names::METRIC_ATTRIBUTES.iter().chain(names::SPAN_ONLY_ATTRIBUTES) {
        assert!(DOCS.contains(&format!("`{name}`")), "{name} is not documented");
    }
}

/// The rows below a table's head.
fn table(head: &str) -> Vec<&'static str> {
    let lines = DOCS.lines().skip_while(|line| !line.starts_with(head));
    lines.skip(2).take_while(|line| line.starts_with('|')).collect()
}
