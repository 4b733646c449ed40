//! Names, units, attributes; nothing unbounded on a metric; what a tenant becomes.

use std::collections::BTreeSet;
use std::sync::Arc;

use outbox_core::{
    ClaimRequest, Notice, Observation, Observer, Operation, RefusalClass, Store, StoreOperation,
};
use outbox_otel::names::{self, Instrument};
use outbox_otel::{Broker, MetricsObserver, TenantLabel};
use outbox_testkit::{FaultyPublisher, FaultyStore, PublishFault, Recorder, StoreFault, When};

use crate::support::{Meters, Outbox, Sort, tenant};

fn observer(outbox: &Outbox, meters: &Meters) -> MetricsObserver {
    MetricsObserver::new(&meters.meter()).with_clock(Arc::new(outbox.clock.clone()))
}

/// A run in which everything happens once: acceptance, refusal, a failed probe, claim, verification and
/// settlement, a tenant held elsewhere, back-off and recovery.
async fn eventful(outbox: &Outbox, meters: &Meters) -> outbox_core::RelayHandle {
    let clock = Arc::new(outbox.clock.clone());
    let recorder = Recorder::new();
    let publisher = FaultyPublisher::new(recorder.clone(), clock.clone());
    publisher.fail_times(1, When::Tenant(tenant("acme")), PublishFault::Refuse(RefusalClass::Refused));
    let slow = PublishFault::Slow(std::time::Duration::from_millis(1_100));
    publisher.fail_times(6, When::Tenant(tenant("slow")), slow);
    let store = FaultyStore::new(outbox.store.clone(), clock);
    store.fail_nth(1, StoreOperation::Probe, StoreFault::Fail);
    store.fail_nth(1, StoreOperation::Claim, StoreFault::Fail);
    store.fail_nth(2, StoreOperation::Settle, StoreFault::Fail);
    store.fail_nth(2, StoreOperation::Verify, StoreFault::Fail);
    outbox.append("acme", 3);
    outbox.append("globex", 3);
    outbox.append("held", 1);
    let request = ClaimRequest::new(tenant("held"), std::num::NonZeroU32::MIN);
    let claim = outbox.store.claim(&request).await.expect("nobody holds it");
    let broker = Broker::new("outbox").with_destination(|_| Some("orders".into()));
    let observer = observer(outbox, meters).with_broker(broker);
    let relay = outbox.relay_of(store, publisher).observer(observer).build().expect("valid");
    let handle = relay.start().expect("there is a runtime");
    outbox
        .run_until(|| outbox.store.unpublished().len() == 1 && meters.total(names::CLAIMS_HELD, &[]) > 0.0)
        .await;
    drop(claim);
    outbox.append("slow", 4);
    outbox.run_until(|| outbox.store.unpublished().is_empty()).await;
    outbox.run_for(std::time::Duration::from_secs(1)).await;
    handle
}

/// Every metric of the table is there with its unit, its meaning and its kind, and no other one is.
#[tokio::test]
async fn metrics_are_those_of_the_table() {
    let (outbox, meters) = (Outbox::new(), Meters::new());
    let _running = eventful(&outbox, &meters).await;
    let points = meters.collect();
    for metric in names::METRICS {
        let point = points.iter().find(|point| point.name == metric.name);
        let point = point.unwrap_or_else(|| panic!("no {}", metric.name));
        assert_eq!((point.unit.as_str(), point.description.as_str()), (metric.unit, metric.meaning));
        let sort = match metric.instrument {
            Instrument::Counter => Sort::Counter,
            Instrument::UpDownCounter => Sort::UpDownCounter,
            Instrument::Histogram => Sort::Histogram,
            Instrument::Gauge => Sort::Gauge,
            other => panic!("{other} is new"),
        };
        assert_eq!(point.sort, sort, "{}", metric.name);
    }
    let known: BTreeSet<&str> = names::METRICS.iter().map(|metric| metric.name).collect();
    let found: BTreeSet<&str> = points.iter().map(|point| point.name.as_str()).collect();
    assert_eq!(found, known);
}

/// Each series has the attributes that the table allows, each of them occurs, and none holds a message's id
/// or subject.
#[tokio::test]
async fn no_metric_carries_an_id_or_a_subject() {
    let (outbox, meters) = (Outbox::new(), Meters::new());
    let _running = eventful(&outbox, &meters).await;
    let errors: BTreeSet<&str> = names::ERROR_TYPES.iter().map(|(error, _)| *error).collect();
    let points = meters.collect();
    for metric in names::METRICS {
        let series = points.iter().filter(|point| point.name == metric.name);
        let found: BTreeSet<&str> =
            series.flat_map(|point| point.attributes.keys().map(String::as_str)).collect();
        let allowed: BTreeSet<&str> = metric.attributes.iter().copied().chain([names::SOURCE]).collect();
        assert_eq!(found, allowed, "{}", metric.name);
        assert!(found.iter().all(|name| names::METRIC_ATTRIBUTES.contains(name)), "{found:?}");
    }
    for (key, value) in points.iter().flat_map(|point| &point.attributes) {
        assert!(!value.contains("subject") && value.parse::<i64>().is_err(), "{key} is {value}");
        assert!(key != names::ERROR_TYPE || errors.contains(value.as_str()), "{key} is {value}");
    }
}

/// A publish's metrics say what the conventions ask for, and the system that the observer was told.
#[tokio::test]
async fn a_publish_is_measured_as_the_conventions_say() {
    let (outbox, meters) = (Outbox::new(), Meters::new());
    outbox.append("acme", 2);
    let publisher = FaultyPublisher::new(Recorder::new(), Arc::new(outbox.clock.clone()));
    publisher.fail(When::Nth(2), PublishFault::Refuse(RefusalClass::Rejected));
    let broker =
        Broker::new("kafka").with_destination(|kind| (kind == "order.placed").then(|| "orders".into()));
    let observer = observer(&outbox, &meters).with_broker(broker);
    let relay = outbox.relay(publisher).observer(observer).build().expect("valid");
    relay.drain().await.expect("a drain");
    let attributes = [
        ("messaging.operation.name", "publish"),
        ("messaging.operation.type", "send"),
        ("messaging.system", "kafka"),
        ("messaging.destination.name", "orders"),
        ("outbox.source", "memory"),
        ("outbox.tenant", "acme"),
        ("outbox.message.kind", "order.placed"),
    ];
    let refused = [&attributes[..], &[("error.type", "rejected")]].concat();
    let points = meters.collect();
    let durations: Vec<_> =
        points.iter().filter(|p| p.name == "messaging.client.operation.duration").collect();
    assert_eq!(durations.len(), 2);
    for point in durations {
        assert!(point.has(&attributes) && point.count == 1, "{point:?}");
        let buckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
        assert_eq!(point.bounds, buckets);
    }
    assert!((meters.total("messaging.client.sent.messages", &attributes) - 2.0).abs() < 0.1);
    assert!((meters.total("messaging.client.sent.messages", &refused) - 1.0).abs() < 0.1);
}

/// A claim that a verification finds lost is counted, with its type, and so is what was accepted under it; a
/// settlement that fails counts the same. Together with what was marked, that is all that was accepted.
#[tokio::test]
async fn a_lost_claim_is_counted_with_what_it_leaves_unmarked() {
    let (outbox, meters) = (Outbox::new(), Meters::new());
    let clock = Arc::new(outbox.clock.clone());
    let publisher = FaultyPublisher::new(Recorder::new(), clock.clone());
    publisher.fail(When::Tenant(tenant("acme")), PublishFault::Slow(std::time::Duration::from_millis(600)));
    let store = FaultyStore::new(outbox.store.clone(), clock);
    store.fail_nth(1, StoreOperation::Verify, StoreFault::Fail);
    outbox.append("acme", 5);
    outbox.append("well", 1);
    let relay = outbox.relay_of(store.clone(), publisher).observer(observer(&outbox, &meters));
    let _running = relay.build().expect("valid").start().expect("there is a runtime");
    outbox.run_until(|| outbox.store.unpublished().is_empty()).await;
    store.fail_nth(store.started(StoreOperation::Settle) + 1, StoreOperation::Settle, StoreFault::Fail);
    outbox.append("globex", 3);
    outbox.run_until(|| outbox.store.unpublished().is_empty()).await;
    outbox.run_for(std::time::Duration::from_secs(1)).await;

    let lost = |of| meters.count(names::CLAIMS_LOST, &[(names::TENANT, of)]);
    let unsettled = |of| meters.count(names::UNSETTLED_MESSAGES, &[(names::TENANT, of)]);
    assert_eq!([lost("acme"), unsettled("acme")], [1, 2], "verified after two messages of 600 ms");
    assert_eq!([lost("globex"), unsettled("globex")], [1, 3]);
    assert_eq!(meters.one(names::UNSETTLED_MESSAGES, &[(names::TENANT, "well")]), Some(0.0), "it is shown");
    let points = meters.collect();
    let verifications = points.iter().filter(|point| point.name == names::VERIFY_DURATION);
    let failed = verifications.clone().filter(|point| point.attributes.contains_key(names::ERROR_TYPE));
    let counts = [verifications.map(|p| p.count).sum::<u64>(), failed.map(|p| p.count).sum()];
    assert_eq!(counts, [store.started(StoreOperation::Verify) as u64, 1]);
    let sum = |name| meters.count(name, &[]);
    assert_eq!(sum(names::SENT_MESSAGES), sum(names::SETTLED_MESSAGES) + sum(names::UNSETTLED_MESSAGES));
}

/// Left out or mapped, thousands of tenants make a handful of series, and nothing overflows; kept, the SDK
/// puts those beyond its limit into its overflow series, in which no tenant is told from another.
#[tokio::test]
async fn a_tenant_can_be_left_out_or_mapped() {
    let plan = TenantLabel::map(|tenant| {
        let plan = if tenant.as_str().ends_with('7') { Some("gold".into()) } else { Some("free".into()) };
        plan.filter(|_| tenant.as_str() != "tenant-1")
    });
    for (label, series) in [(TenantLabel::Omit, 1), (plan, 3), (TenantLabel::Keep, 2_001)] {
        let overflows = matches!(label, TenantLabel::Keep);
        let (outbox, meters) = (Outbox::new(), Meters::new());
        for n in 0..2_500 {
            outbox.append(&format!("tenant-{n}"), 1);
        }
        let observer = observer(&outbox, &meters).with_tenants(label);
        let relay = outbox.relay(Recorder::new()).observer(observer).build().expect("valid");
        relay.drain().await.expect("a drain");
        let points = meters.collect();
        let sent: Vec<_> = points.iter().filter(|point| point.name == names::SENT_MESSAGES).collect();
        assert_eq!(sent.len(), series);
        assert!((sent.iter().map(|point| point.value).sum::<f64>() - 2_500.0).abs() < 0.1);
        let overflow = sent.iter().find(|point| point.attributes.contains_key("otel.metric.overflow"));
        assert_eq!(overflow.map(|point| point.value), overflows.then_some(500.0));
    }
}

/// An observer that panics wherever it can, beside a map of tenants that does, costs the metrics of one
/// tenant and nothing else.
#[tokio::test]
async fn a_panicking_observer_costs_only_its_own() {
    let (outbox, meters) = (Outbox::new(), Meters::new());
    outbox.append("acme", 3);
    outbox.append("bad", 3);
    let label = TenantLabel::map(|tenant| {
        assert!(tenant.as_str() != "bad", "on purpose");
        Some(tenant.as_str().to_owned().into())
    });
    let recorder = Recorder::new();
    let relay = outbox
        .relay(recorder.clone())
        .observer(Panics)
        .observer(observer(&outbox, &meters).with_tenants(label))
        .build()
        .expect("valid");
    let report = relay.drain().await.expect("a drain");
    assert!(report.is_complete() && relay.observer_panics() > 0);
    recorder.assert_in_order();
    recorder.assert_no_duplicates();
    assert!((meters.total(names::SENT_MESSAGES, &[(names::TENANT, "acme")]) - 3.0).abs() < 0.1);
    assert!((meters.total(names::SENT_MESSAGES, &[]) - 3.0).abs() < 0.1);
    assert!(meters.total(names::PUBLISH_ACTIVE, &[]).abs() < 0.1);
}

/// An observer that takes a second for everything makes the relay slow, and nothing is refused or lost.
#[tokio::test]
async fn a_slow_observer_costs_only_time() {
    let (outbox, meters) = (Outbox::new(), Meters::new());
    outbox.append("acme", 5);
    let recorder = Recorder::new();
    let slow = Slow(outbox.clock.clone());
    let metrics = observer(&outbox, &meters);
    let relay = outbox.relay(recorder.clone()).observer(slow).observer(metrics).build().expect("valid");
    assert!(relay.drain().await.expect("a drain").is_complete());
    recorder.assert_in_order();
    recorder.assert_no_duplicates();
    assert!((meters.total(names::SETTLED_MESSAGES, &[]) - 5.0).abs() < 0.1);
}

struct Panics;

impl Observer for Panics {
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        let even = |operation: &Operation<'_>| matches!(operation, Operation::Publish { message, .. } if message.id.get() % 2 == 0);
        assert!(even(operation), "on purpose");
        Some(Box::new(Self))
    }

    fn notice(&self, _: &Notice<'_>) {
        panic!("on purpose")
    }
}

impl Observation for Panics {
    fn propagate(&mut self, _: &mut outbox_core::Headers) {
        panic!("on purpose")
    }

    fn enter(&mut self, _: &mut dyn FnMut()) {
        panic!("on purpose")
    }

    fn end(self: Box<Self>, _: &outbox_core::Outcome<'_>) {
        panic!("on purpose")
    }
}

/// Takes a second, by the clock, for each call.
#[derive(Clone)]
struct Slow(outbox_testkit::ManualClock);

impl Observer for Slow {
    fn start(&self, _: &Operation<'_>) -> Option<Box<dyn Observation>> {
        self.0.advance(std::time::Duration::from_secs(1));
        Some(Box::new(self.clone()))
    }

    fn notice(&self, _: &Notice<'_>) {
        self.0.advance(std::time::Duration::from_secs(1));
    }
}

impl Observation for Slow {
    fn propagate(&mut self, _: &mut outbox_core::Headers) {}

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn end(self: Box<Self>, _: &outbox_core::Outcome<'_>) {
        self.0.advance(std::time::Duration::from_secs(1));
    }
}
