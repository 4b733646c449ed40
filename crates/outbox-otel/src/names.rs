//! Every name that an observer uses: metrics with their units, attributes, and values from closed sets.
//!
//! Names that begin with `messaging.` or `error.` are OpenTelemetry's semantic conventions; ours begin with
//! `outbox.`.

use std::fmt;

use outbox_core::text::{MAX_NAME, one_line};

/// The convention's name of how long a publish took.
pub const OPERATION_DURATION: &str = "messaging.client.operation.duration";
/// The convention's name of how many publishes ended.
pub const SENT_MESSAGES: &str = "messaging.client.sent.messages";
/// How many publishes began.
pub const PUBLISH_ATTEMPTS: &str = "outbox.publish.attempts";
/// How many publishes are under way.
pub const PUBLISH_ACTIVE: &str = "outbox.publish.active";
/// From `occurred_at` to acceptance.
pub const DELIVERY_DELAY: &str = "outbox.delivery.delay";
/// How long a claim took.
pub const CLAIM_DURATION: &str = "outbox.claim.duration";
/// How many messages claims handed over.
pub const CLAIMED_MESSAGES: &str = "outbox.claimed.messages";
/// How many claims found the tenant held by another.
pub const CLAIMS_HELD: &str = "outbox.claims.held";
/// How many claims were lost before they were settled.
pub const CLAIMS_LOST: &str = "outbox.claims.lost";
/// How many messages a claim handed over.
pub const BATCH_SIZE: &str = "outbox.batch.size";
/// How long a verification took.
pub const VERIFY_DURATION: &str = "outbox.verify.duration";
/// How long a settlement took.
pub const SETTLE_DURATION: &str = "outbox.settle.duration";
/// How many messages were marked.
pub const SETTLED_MESSAGES: &str = "outbox.settled.messages";
/// How many messages were accepted and not marked.
pub const UNSETTLED_MESSAGES: &str = "outbox.unsettled.messages";
/// How long a probe took.
pub const PROBE_DURATION: &str = "outbox.probe.duration";
/// How long ago the last probe succeeded.
pub const PROBE_AGE: &str = "outbox.probe.age";
/// How old the oldest pending message is.
pub const PENDING_AGE: &str = "outbox.pending.age";
/// How often in a row a tenant failed.
pub const TENANT_FAILURES: &str = "outbox.tenant.failures";
/// How many tenants back off.
pub const TENANTS_BACKING_OFF: &str = "outbox.tenants.backing_off";
/// Subjects that back off.
pub const SUBJECTS_BACKING_OFF: &str = "outbox.subjects.backing_off";
/// How many runs of the relay work.
pub const RELAYS_RUNNING: &str = "outbox.relays.running";

/// Attribute: what is being done, `publish`.
pub const OPERATION_NAME: &str = "messaging.operation.name";
/// Attribute: the convention's sort of operation, `send`.
pub const OPERATION_TYPE: &str = "messaging.operation.type";
/// Attribute: the messaging system; `outbox` unless the observer is told another.
pub const SYSTEM: &str = "messaging.system";
/// Attribute: the topic, the queue or the exchange, if the observer is told.
pub const DESTINATION: &str = "messaging.destination.name";
/// Attribute: what it failed of, from [`ERROR_TYPES`].
pub const ERROR_TYPE: &str = "error.type";
/// Attribute: the store's source.
pub const SOURCE: &str = "outbox.source";
/// Attribute: whose messages.
pub const TENANT: &str = "outbox.tenant";
/// Attribute: the message's kind.
pub const MESSAGE_KIND: &str = "outbox.message.kind";

/// Attribute, of spans only: the message's id.
pub const MESSAGE_ID: &str = "messaging.message.id";
/// Attribute, of spans only: how many bytes the payload has.
pub const BODY_SIZE: &str = "messaging.message.body.size";
/// Attribute, of spans only: which thing the message is about.
pub const MESSAGE_SUBJECT: &str = "outbox.message.subject";
/// Attribute, of spans only: which attempt it is.
pub const ATTEMPT: &str = "outbox.attempt";

/// The attributes that a metric may carry: those with few values.
pub const METRIC_ATTRIBUTES: &[&str] =
    &[OPERATION_NAME, OPERATION_TYPE, SYSTEM, DESTINATION, ERROR_TYPE, SOURCE, TENANT, MESSAGE_KIND];
/// The attributes that only a span may carry: as many values as there are messages.
pub const SPAN_ONLY_ATTRIBUTES: &[&str] = &[MESSAGE_ID, BODY_SIZE, MESSAGE_SUBJECT, ATTEMPT];

/// The value of [`OPERATION_NAME`].
pub const PUBLISH: &str = "publish";
/// The value of [`OPERATION_TYPE`].
pub const SEND: &str = "send";
/// The value of [`SYSTEM`], unless the observer is told another.
pub const OUTBOX: &str = "outbox";

/// Values of [`ERROR_TYPE`], with what they mean. There are no others.
pub const ERROR_TYPES: &[(&str, &str)] = &[
    ("unavailable", "the publisher said that the way to the receiver is down"),
    ("refused", "the publisher said that the receiver did not take it now"),
    ("rejected", "the publisher said that the receiver will never take it"),
    ("timeout", "the publish deadline passed"),
    ("panic", "the publisher panicked"),
    ("lost", "dropped before it ended, by a stop's deadline: nobody knows what became of it"),
    ("store_transient", "the store failed, and may succeed again by itself"),
    ("store_permanent", "the store failed, until somebody changes something"),
    ("_OTHER", "something that this version does not know"),
];

/// What sort of instrument a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Instrument {
    /// Only grows.
    Counter,
    /// Grows and shrinks, never below zero.
    UpDownCounter,
    /// A distribution.
    Histogram,
    /// The value at the time of the collection.
    Gauge,
}

impl fmt::Display for Instrument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::UpDownCounter => "up-down counter",
            Self::Histogram => "histogram",
            Self::Gauge => "gauge",
        })
    }
}

/// A metric: its name, what it is and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What sort of instrument it is.
    pub instrument: Instrument,
    /// Its unit, in UCUM's notation.
    pub unit: &'static str,
    /// What it counts or measures.
    pub meaning: &'static str,
    /// The attributes that it may carry, beside [`SOURCE`].
    pub attributes: &'static [&'static str],
}

const PUBLISHES: &[&str] =
    &[OPERATION_NAME, OPERATION_TYPE, SYSTEM, DESTINATION, TENANT, MESSAGE_KIND, ERROR_TYPE];
const BEGUN: &[&str] = &[OPERATION_NAME, OPERATION_TYPE, SYSTEM, DESTINATION, TENANT, MESSAGE_KIND];
const CLAIMS: &[&str] = &[TENANT, ERROR_TYPE];
const TENANTS: &[&str] = &[TENANT];

const fn metric(
    name: &'static str,
    instrument: Instrument,
    unit: &'static str,
    attributes: &'static [&'static str],
    meaning: &'static str,
) -> Metric {
    Metric { name, instrument, unit, meaning, attributes }
}

/// Every metric there is.
#[rustfmt::skip]
pub const METRICS: &[Metric] = {
    use Instrument::{Counter, Gauge, Histogram, UpDownCounter};
    &[
        metric(OPERATION_DURATION, Histogram, "s", PUBLISHES, "from handing a message to the publisher to its answer"),
        metric(SENT_MESSAGES, Counter, "{message}", PUBLISHES, "publishes that ended: accepted, or with `error.type`"),
        metric(PUBLISH_ATTEMPTS, Counter, "{attempt}", BEGUN, "publishes that began"),
        metric(PUBLISH_ACTIVE, UpDownCounter, "{message}", BEGUN, "publishes under way"),
        metric(DELIVERY_DELAY, Histogram, "s", BEGUN, "from `occurred_at` to acceptance, by the database's clock"),
        metric(CLAIM_DURATION, Histogram, "s", CLAIMS, "from asking for a tenant to having it, or to hearing that another has"),
        metric(CLAIMED_MESSAGES, Counter, "{message}", TENANTS, "messages that claims handed over"),
        metric(CLAIMS_HELD, Counter, "{claim}", TENANTS, "claims that found the tenant held by another"),
        metric(CLAIMS_LOST, Counter, "{claim}", CLAIMS, "claims whose verification or settlement failed: they are lost, or taken for it"),
        metric(BATCH_SIZE, Histogram, "{message}", TENANTS, "messages that one claim handed over"),
        metric(VERIFY_DURATION, Histogram, "s", CLAIMS, "asking, between two messages, whether the claim still lives"),
        metric(SETTLE_DURATION, Histogram, "s", CLAIMS, "marking what was accepted and giving the tenant back"),
        metric(SETTLED_MESSAGES, Counter, "{message}", TENANTS, "messages that were marked as published"),
        metric(UNSETTLED_MESSAGES, Counter, "{message}", TENANTS, "messages that were accepted and not marked, since their claim was lost or a message before them failed: they are published again"),
        metric(PROBE_DURATION, Histogram, "s", &[ERROR_TYPE], "looking for each tenant's oldest message"),
        metric(PROBE_AGE, Gauge, "s", &[], "time since the last probe that succeeded began, or since the relay started"),
        metric(PENDING_AGE, Gauge, "s", TENANTS, "age of the oldest pending message at the last probe; 0 is caught up"),
        metric(TENANT_FAILURES, Gauge, "{failure}", TENANTS, "failures in a row of a tenant that backs off; 0 is well"),
        metric(TENANTS_BACKING_OFF, Gauge, "{tenant}", &[], "tenants that back off"),
        metric(SUBJECTS_BACKING_OFF, Gauge, "{subject}", &[], "subjects that back off alone, while their tenants go on"),
        metric(RELAYS_RUNNING, Gauge, "{relay}", &[], "runs of the relay that work"),
    ]
};

/// What a span of a publish is called: the operation and the destination, as the conventions say, or the
/// message's kind if no destination is known. Never the subject: names have few values. One line, of the first 256
/// characters at most.
pub fn span_name(destination_or_kind: &str) -> String {
    format!("{PUBLISH} {}", one_line(destination_or_kind, MAX_NAME))
}
