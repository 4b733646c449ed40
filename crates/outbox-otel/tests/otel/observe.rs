//! The documentation's service, asked over HTTP; its dashboard and alert rules against what it answers.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::metrics::MeterProvider as _;
use outbox_core::{
    ClaimRequest, NewMessage, RefusalClass, Relay, RelayConfig, Store, StoreOperation, SystemClock, TenantId,
};
use outbox_memory::MemoryStore;
use outbox_otel::{MetricsObserver, names};
use outbox_testkit::{FaultyPublisher, FaultyStore, PublishFault, Recorder, StoreFault, When};
use prometheus::Registry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::service;

const DOCS: &str = include_str!("../../../../docs/observe.md");
const DASHBOARD: &str = include_str!("../../../../docs/grafana-outbox.json");

/// A service with a relay that may fail.
struct Service {
    address: std::net::SocketAddr,
    relay: Relay,
    table: MemoryStore,
    store: FaultyStore,
    publisher: FaultyPublisher,
    _provider: opentelemetry_sdk::metrics::SdkMeterProvider,
}

impl Service {
    async fn start() -> Self {
        let clock = Arc::new(SystemClock::new());
        let table = MemoryStore::new();
        let store = FaultyStore::new(table.clone(), clock.clone());
        let publisher = FaultyPublisher::new(Recorder::new(), clock);
        let registry = Registry::new();
        let provider = service::meter_provider(&registry).expect("a provider");
        let config = RelayConfig::builder()
            .tenants(["acme"])
            .poll_interval(Duration::from_millis(5))
            .max_lag(Duration::from_secs(60))
            .health_timeout(Duration::from_millis(100))
            .store_timeout(Duration::from_millis(200))
            .max_batch_time(Duration::from_secs(60))
            .build()
            .expect("valid");
        let relay = Relay::builder(store.clone(), publisher.clone(), config)
            .observer(MetricsObserver::new(&provider.meter("outbox")))
            .build()
            .expect("valid");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let router = service::router(relay.health(), registry);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, relay, table, store, publisher, _provider: provider }
    }

    /// Asks over HTTP; answers the status and the body.
    async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: outbox\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, body.to_owned())
    }

    /// Asks until the answer is what it should become, and answers it.
    async fn becomes(&self, status: u16, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(50);
        loop {
            let (found, body) = self.get("/healthz").await;
            if found == status && body.contains(text) {
                return body;
            }
            assert!(Instant::now() < deadline, "{found} {body}, not {status} {text}");
            tokio::task::yield_now().await;
        }
    }
}

fn message() -> NewMessage {
    NewMessage::new(acme(), "order.placed", "order-1", "{}")
}

fn acme() -> TenantId {
    TenantId::new("acme").expect("a tenant id")
}

/// Green while the relay works; red when it was not started, stopped, or its task died with its runtime; green
/// again after another start of the same relay.
#[tokio::test]
async fn health_is_red_when_no_relay_works() {
    let service = Service::start().await;
    assert_eq!(service.get("/healthz").await, (503, "the relay is not started\nacme: caught up\n".into()));
    let mut elsewhere = tokio::runtime::Builder::new_multi_thread();
    let elsewhere = elsewhere.worker_threads(1).enable_all().build().expect("a runtime");
    let entered = elsewhere.enter();
    let _running = service.relay.start().expect("there is a runtime");
    drop(entered);
    assert_eq!(service.becomes(200, "healthy").await, "healthy\nacme: caught up\n");
    let ended = tokio::task::spawn_blocking(move || elsewhere.shutdown_timeout(Duration::from_secs(20)));
    ended.await.expect("it ends");
    assert_eq!(service.get("/healthz").await.0, 503, "the first question after its death");
    service.becomes(503, "the relay is dead").await;
    let running = service.relay.start().expect("there is a runtime");
    service.becomes(200, "healthy").await;
    running.stop().await.expect("it stops");
    service.becomes(503, "the relay is stopped").await;
}

/// A database that does not answer is red within the health timeout, and green again when it does, without a
/// restart.
#[tokio::test]
async fn health_is_red_while_the_database_is_silent() {
    let service = Service::start().await;
    let _running = service.relay.start().expect("there is a runtime");
    service.becomes(200, "healthy").await;
    service.store.fail(StoreOperation::Probe, StoreFault::Hang);
    let asked = Instant::now();
    service.becomes(503, "the database did not answer within 100 ms").await;
    // Long before the store's own deadline.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    service.store.heal();
    service.becomes(200, "healthy").await;
}

/// Each tenant's line says what it does: it is being published, it backs off (after which refusal), another
/// holds it, it is behind, it caught up.
#[tokio::test]
async fn health_tells_what_each_tenant_does() {
    let service = Service::start().await;
    let _running = service.relay.start().expect("there is a runtime");
    let request = ClaimRequest::new(acme(), NonZeroU32::MIN);
    let claim = service.table.claim(&request).await.expect("a claim");
    let id = service.table.append(message());
    service.becomes(200, "acme: held elsewhere\n").await;
    service.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Unavailable));
    drop(claim);
    let text = format!("failures in a row, message {id}: unavailable: refused, on purpose\n");
    service.becomes(200, &text).await;
    service.publisher.heal();
    service.becomes(200, "acme: caught up\n").await;
    service.publisher.fail_times(1, When::Every, PublishFault::Slow(Duration::from_millis(500)));
    service.table.append(message());
    service.becomes(200, "acme: busy\n").await;
    service.becomes(200, "acme: caught up\n").await;
    service.publisher.fail(When::Every, PublishFault::Refuse(RefusalClass::Rejected));
    let now = outbox_core::Clock::now(&SystemClock::new()).as_micros();
    let long_ago = outbox_core::Timestamp::from_micros(now - 61_000_000);
    service.table.append(message().with_occurred_at(long_ago));
    let body = service.becomes(503, "rejected: refused, on purpose; 61").await;
    assert!(body.starts_with("acme is 61") && body.contains(" ms behind\n"), "{body}");
}

/// Everything that a run can show is on `/metrics`; the dashboard and the alert rules ask for nothing else.
#[tokio::test]
async fn dashboard_and_alerts_ask_for_metrics_that_exist() {
    let service = Service::start().await;
    service.publisher.fail(When::Nth(1), PublishFault::Refuse(RefusalClass::Refused));
    // Long enough for a verification before the next one.
    service.publisher.fail(When::Nth(2), PublishFault::Slow(Duration::from_millis(1_050)));
    service.store.fail_nth(2, StoreOperation::Settle, StoreFault::Fail);
    let request = ClaimRequest::new(acme(), NonZeroU32::MIN);
    let claim = service.table.claim(&request).await.expect("a claim");
    service.table.append_all([message(), message()]);
    let _running = service.relay.start().expect("there is a runtime");
    service.becomes(200, "held elsewhere").await;
    drop(claim);
    service.becomes(200, "caught up").await;
    let (status, body) = service.get("/metrics").await;
    assert_eq!(status, 200);
    let shown: BTreeSet<&str> = body
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let base = |name: &str| name.replace('.', "_");
    for metric in names::METRICS {
        let found = shown.iter().any(|name| name.starts_with(&base(metric.name)));
        assert!(found, "{} is not in {shown:?}", metric.name);
    }
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let mut asked = expressions(&dashboard);
    assert!(asked.len() >= 8, "a dashboard of {} expressions", asked.len());
    let rules = DOCS.lines().filter_map(|line| line.trim().strip_prefix("expr: ").map(str::to_owned));
    let rules: Vec<String> = rules.collect();
    assert!(rules.len() >= 5, "{} alert rules", rules.len());
    asked.extend(rules);
    for expression in &asked {
        let named = metrics_of(expression);
        assert!(!named.is_empty(), "{expression}");
        for name in named {
            assert!(shown.contains(name.as_str()), "{name} of {expression} is not in {shown:#?}");
        }
    }
}

/// The service that the documentation shows is the one that these tests ask.
#[test]
fn the_documented_service_is_the_tested_one() {
    assert!(
        DOCS.contains(include_str!("../../examples/observe.rs")),
        "docs/observe.md shows another service"
    );
}

/// Every `expr` in a dashboard.
fn expressions(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Object(fields) => {
            let own = fields.get("expr").and_then(|expr| expr.as_str()).map(str::to_owned);
            own.into_iter().chain(fields.values().flat_map(expressions)).collect()
        }
        serde_json::Value::Array(items) => items.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

/// The metrics that a query names.
fn metrics_of(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_metric =
        |word: &&str| (word.starts_with("outbox_") || word.starts_with("messaging_")) && !is_label(word);
    words.filter(is_metric).map(str::to_owned).collect()
}

fn is_label(word: &str) -> bool {
    names::METRIC_ATTRIBUTES.iter().any(|name| name.replace('.', "_") == word)
}
