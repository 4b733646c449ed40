//! What must have arrived at the receiver.

use outbox_otel::names;

use super::receiver::{Received, Span};
use super::{REFUSED, http, subscriber, tree};

/// What is missing or wrong; nothing is well.
pub(super) fn problems(received: &Received, orders: i64) -> Vec<String> {
    let mut problems = Vec::new();
    let requests: Vec<&Span> = received.spans.iter().filter(|span| span.name == http::REQUEST).collect();
    if requests.len() as u64 != orders.unsigned_abs() {
        problems.push(format!("{} requests were traced, not {orders}", requests.len()));
    }
    problems.extend(requests.iter().filter_map(|request| broken_trace(&received.spans, request)));
    let spans = received.spans.len();
    let expected = 3 * orders.unsigned_abs() + 1;
    if spans as u64 != expected {
        problems.push(format!("{spans} spans, not {expected}"));
    }
    let sum = |metric: &str, failed: bool| -> f64 {
        let is_meant = |point: &&super::receiver::Point| {
            point.metric == metric && point.attributes.contains_key(names::ERROR_TYPE) == failed
        };
        received.points.iter().filter(is_meant).map(|point| point.value).sum()
    };
    #[allow(clippy::cast_precision_loss)]
    let orders = orders as f64;
    let expected = [
        (names::PUBLISH_ATTEMPTS, false, orders + 1.0),
        (names::SENT_MESSAGES, false, orders),
        (names::SENT_MESSAGES, true, 1.0),
        (names::SETTLED_MESSAGES, false, orders),
        (names::PUBLISH_ACTIVE, false, 0.0),
    ];
    for (metric, failed, expected) in expected {
        let found = sum(metric, failed);
        if (found - expected).abs() > 0.1 {
            problems.push(format!("{metric} is {found}, not {expected}"));
        }
    }
    for gauge in [names::PENDING_AGE, names::TENANT_FAILURES] {
        let is_there = |point: &super::receiver::Point| {
            point.metric == gauge && point.attributes.contains_key(names::TENANT)
        };
        if !received.points.iter().any(is_there) {
            problems.push(format!("{gauge} is there of no tenant"));
        }
    }
    problems
}

/// A request has one publish below it for each attempt, and the last one has the mailer's span below it.
fn broken_trace(spans: &[Span], request: &Span) -> Option<String> {
    let order = format!("order-{}", request.attributes.get("order").map_or("?", String::as_str));
    let publishes = tree::children(spans, request);
    let attempts = if order == REFUSED { 2 } else { 1 };
    let is_well = publishes.len() == attempts
        && publishes.iter().enumerate().all(|(index, publish)| {
            let is_last = index + 1 == attempts;
            let below = tree::children(spans, publish);
            publish.name == names::span_name("order.placed")
                && publish.error.is_none() == is_last
                && below.iter().map(|span| span.name.as_str()).eq(is_last.then_some(subscriber::PROCESS))
        });
    (!is_well).then(|| format!("the trace of {order} is broken: {publishes:?}"))
}
