//! What the gauges show, and for how long.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{MessageId, Publishing, RefusalClass, Relay, RelayConfig, StoreOperation, Timestamp};
use outbox_otel::{MetricsObserver, TenantLabel, names};
use outbox_testkit::{FaultyPublisher, FaultyStore, PublishFault, Recorder, StoreFault, When};

use crate::support::{Meters, Outbox, order, tenant};

struct Setup {
    outbox: Outbox,
    meters: Meters,
    publisher: FaultyPublisher,
    store: FaultyStore,
}

impl Setup {
    fn new() -> Self {
        let (outbox, meters) = (Outbox::new(), Meters::new());
        let publisher = FaultyPublisher::new(Recorder::new(), Arc::new(outbox.clock.clone()));
        let store = FaultyStore::new(outbox.store.clone(), Arc::new(outbox.clock.clone()));
        Self { outbox, meters, publisher, store }
    }

    fn relay(&self, label: TenantLabel) -> Relay {
        let observer = MetricsObserver::new(&self.meters.meter());
        let observer = observer.with_clock(Arc::new(self.outbox.clock.clone())).with_tenants(label);
        let relay = self.outbox.relay_of(self.store.clone(), self.publisher.clone());
        relay.observer(observer).build().expect("valid")
    }

    fn gauge(&self, name: &str, of: &str) -> Option<f64> {
        self.meters.one(name, &[(names::TENANT, of)])
    }

    fn refuse(&self, of: &str) {
        self.publisher.fail(When::Tenant(tenant(of)), PublishFault::Refuse(RefusalClass::Refused));
    }
}

/// The age of the oldest message of a tenant that backs off stays fresh, without a claim; it is zero once the
/// tenant caught up. The failures in a row rise, and are zero again after the recovery.
#[tokio::test]
async fn ages_and_failures_follow_a_tenant_that_backs_off() {
    let setup = Setup::new();
    setup.refuse("acme");
    setup.outbox.append("acme", 1);
    let relay = setup.relay(TenantLabel::Keep);
    let handle = relay.start().expect("there is a runtime");
    setup.outbox.run_for(Duration::from_secs(60)).await;
    let failures = setup.gauge(names::TENANT_FAILURES, "acme").expect("it backs off");
    assert!(failures >= 7.0, "{failures}");
    assert_eq!(setup.meters.one(names::TENANTS_BACKING_OFF, &[]), Some(1.0));
    let claims = setup.store.started(StoreOperation::Claim);
    for seconds in [61, 62, 63] {
        setup.outbox.run_for(Duration::from_secs(1)).await;
        let age = setup.gauge(names::PENDING_AGE, "acme").expect("it is pending");
        assert!((age - f64::from(seconds)).abs() < 0.5, "{age} s at {seconds} s");
    }
    assert_eq!(setup.store.started(StoreOperation::Claim), claims, "the back-off goes on");
    setup.publisher.heal();
    setup.outbox.run_until(|| setup.outbox.store.unpublished().is_empty()).await;
    setup.outbox.run_for(Duration::from_secs(1)).await;
    assert_eq!(setup.gauge(names::PENDING_AGE, "acme"), Some(0.0));
    assert_eq!(setup.gauge(names::TENANT_FAILURES, "acme"), Some(0.0));
    assert_eq!(setup.meters.one(names::TENANTS_BACKING_OFF, &[]), Some(0.0));
    drop(handle);
}

/// Subjects that wait alone are counted, each once however often it is refused, and no more once they are well;
/// their tenant is not one that backs off.
#[tokio::test]
async fn subjects_that_back_off_alone_are_counted() {
    let setup = Setup::new();
    setup.outbox.append("acme", 3);
    for id in [1, 2] {
        let refused = PublishFault::Refuse(RefusalClass::Refused);
        setup.publisher.fail(When::Message(MessageId::new(id)), refused);
    }
    let config = RelayConfig::builder().discover_tenants().build().expect("valid");
    let publishing = Publishing::by_subject(setup.publisher.clone(), 1);
    let relay = Relay::builder(setup.store.clone(), publishing, config);
    let relay = relay.clock(Arc::new(setup.outbox.clock.clone())).seed(1);
    let observer = MetricsObserver::new(&setup.meters.meter());
    let relay = relay.observer(observer.with_clock(Arc::new(setup.outbox.clock.clone())));
    let handle = relay.build().expect("valid").start().expect("there is a runtime");
    setup.outbox.run_for(Duration::from_secs(20)).await;
    assert_eq!(setup.meters.one(names::SUBJECTS_BACKING_OFF, &[]), Some(2.0));
    assert_eq!(setup.meters.one(names::TENANTS_BACKING_OFF, &[]), Some(0.0));
    setup.publisher.heal();
    setup.outbox.run_until(|| setup.outbox.store.unpublished().is_empty()).await;
    setup.outbox.run_for(Duration::from_secs(1)).await;
    assert_eq!(setup.meters.one(names::SUBJECTS_BACKING_OFF, &[]), Some(0.0));
    drop(handle);
}

/// Without the tenant's attribute, a gauge is the highest of all tenants.
#[tokio::test]
async fn without_tenants_a_gauge_is_the_highest_of_them() {
    let setup = Setup::new();
    setup.refuse("old");
    setup.refuse("young");
    setup.outbox.append("old", 1);
    let _running = setup.relay(TenantLabel::Omit).start().expect("there is a runtime");
    setup.outbox.run_for(Duration::from_secs(20)).await;
    setup.outbox.append("young", 1);
    setup.outbox.run_for(Duration::from_secs(10)).await;
    let age = setup.meters.one(names::PENDING_AGE, &[]).expect("something is pending");
    assert!((age - 30.0).abs() < 0.5, "{age}");
    assert_eq!(setup.meters.one(names::TENANTS_BACKING_OFF, &[]), Some(2.0));
}

/// A message whose time cannot be read has no age, and its tenant is not shown as caught up.
#[tokio::test]
async fn an_unreadable_message_has_no_age() {
    let setup = Setup::new();
    setup.refuse("acme");
    let first = setup.outbox.store.append(order("acme", 0));
    let _running = setup.relay(TenantLabel::Keep).start().expect("there is a runtime");
    setup.outbox.run_for(Duration::from_secs(1)).await;
    assert!(setup.gauge(names::PENDING_AGE, "acme").is_some());
    setup.outbox.store.append_unreadable(tenant("acme"));
    setup.publisher.heal();
    setup.outbox.run_until(|| setup.outbox.store.published().iter().any(|p| p.message.id == first)).await;
    setup.outbox.run_for(Duration::from_secs(1)).await;
    assert_eq!(setup.gauge(names::PENDING_AGE, "acme"), None);
    assert_eq!(setup.meters.one(names::TENANTS_BACKING_OFF, &[]), Some(1.0));
}

/// What a probe says is as old as its question, however late the answer came.
#[tokio::test]
async fn the_age_of_a_probe_counts_from_when_it_was_asked() {
    let setup = Setup::new();
    setup.store.fail(StoreOperation::Probe, StoreFault::AnswerLate(Duration::from_secs(10)));
    let _running = setup.relay(TenantLabel::Keep).start().expect("there is a runtime");
    setup.outbox.run_for(Duration::from_secs(25)).await;
    let age = setup.meters.one(names::PROBE_AGE, &[]).expect("it probed");
    assert!((10.0..20.5).contains(&age), "{age}");
}

/// While probes fail, the time since the last good one grows.
#[tokio::test]
async fn a_silent_database_shows_in_the_probes_age() {
    let setup = Setup::new();
    let _running = setup.relay(TenantLabel::Keep).start().expect("there is a runtime");
    setup.outbox.run_for(Duration::from_secs(5)).await;
    assert!(setup.meters.one(names::PROBE_AGE, &[]).expect("it probed") < 1.0);
    setup.store.fail(StoreOperation::Probe, StoreFault::Hang);
    setup.outbox.run_for(Duration::from_secs(45)).await;
    let age = setup.meters.one(names::PROBE_AGE, &[]).expect("it probed");
    assert!((age - 45.0).abs() < 1.0, "{age}");
    assert!(setup.meters.total(names::PROBE_DURATION, &[(names::ERROR_TYPE, "store_transient")]) > 25.0);
}

/// A run counts while it works: one, none after its stop, none after its task died with its runtime. What it
/// knew of tenants is gone with it, and all of it once the relay is.
#[test]
fn a_relay_that_ended_shows_nothing_stale() {
    let runtime = || tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let setup = Setup::new();
    setup.refuse("acme");
    setup.outbox.append("acme", 1);
    let relay = setup.relay(TenantLabel::Keep);
    let first = runtime();
    let handle = first.block_on(async {
        let handle = relay.start().expect("there is a runtime");
        setup.outbox.run_for(Duration::from_secs(5)).await;
        handle
    });
    assert_eq!(setup.meters.one(names::RELAYS_RUNNING, &[]), Some(1.0));
    assert!(setup.gauge(names::PENDING_AGE, "acme").is_some());
    drop(first);
    assert_eq!(setup.meters.one(names::RELAYS_RUNNING, &[]), Some(0.0), "its task died");
    assert!(setup.gauge(names::PENDING_AGE, "acme").is_none());
    assert!(setup.gauge(names::TENANT_FAILURES, "acme").is_none());
    drop(handle);
    runtime().block_on(async {
        let handle = relay.start().expect("there is a runtime");
        setup.outbox.run_for(Duration::from_secs(5)).await;
        assert_eq!(setup.meters.one(names::RELAYS_RUNNING, &[]), Some(1.0));
        handle.stop().await.expect("it stops");
    });
    assert_eq!(setup.meters.one(names::RELAYS_RUNNING, &[]), Some(0.0));
    drop(relay);
    assert_eq!(setup.meters.one(names::RELAYS_RUNNING, &[]), None, "nobody is there to ask");
}

/// The delay to acceptance is by the database's clock: a relay whose own is ten minutes off shows the same.
#[tokio::test]
async fn a_delay_is_by_the_databases_clock() {
    let setup = Setup::new();
    let relay_clock = outbox_testkit::ManualClock::new();
    let skewed = Timestamp::from_micros(outbox_core::Clock::now(&relay_clock).as_micros() - 600_000_000);
    relay_clock.set_date(skewed);
    setup.outbox.append("acme", 4);
    setup.outbox.clock.advance(Duration::from_secs(30));
    let observer = MetricsObserver::new(&setup.meters.meter()).with_clock(Arc::new(relay_clock));
    let relay = setup.outbox.relay(Recorder::new()).observer(observer).build().expect("valid");
    relay.drain().await.expect("a drain");
    let points = setup.meters.collect();
    let delay = points.iter().find(|point| point.name == names::DELIVERY_DELAY).expect("four were accepted");
    assert_eq!(delay.count, 4);
    assert!((delay.value - 120.0).abs() < 0.1, "{delay:?}");
}
