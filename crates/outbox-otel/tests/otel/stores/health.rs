//! The documentation's service over a real database that goes silent, and away.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use opentelemetry::metrics::MeterProvider as _;
use outbox_core::{NewMessage, Relay, RelayConfig, TenantId};
use outbox_otel::MetricsObserver;
use outbox_sqlx::OutboxTable;
use outbox_testkit::Recorder;
use prometheus::Registry;
use servers::{Postgres, Proxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::postgres::Database;
use crate::service;

/// What the checks may take.
const HEALTH_TIMEOUT: Duration = Duration::from_millis(700);
/// Beyond it nothing is slow only because the machine is.
const BOUND: Duration = Duration::from_secs(50);

/// Asks over HTTP; answers the status, the body and how long it took.
async fn get(address: SocketAddr, path: &str) -> (u16, String, Duration) {
    let asked = Instant::now();
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: outbox\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned(), asked.elapsed())
}

/// Asks until the status is this one, and answers the body.
async fn becomes(address: SocketAddr, status: u16) -> String {
    let begin = Instant::now();
    loop {
        let (found, body, _) = get(address, "/healthz").await;
        if found == status {
            return body;
        }
        assert!(begin.elapsed() < BOUND, "{found} {body}, not {status}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Green; black-holed, the next question is answered red within the health timeout, as is each until the
/// network is back; then green, and messages flow, without a restart of anything. The same when the server
/// crashes and comes back. `/metrics` answers all the while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_follows_a_postgres_server_that_goes_and_comes_back() {
    let mut server = Postgres::start(&[]).expect("a server");
    let database = Database::on(&server, "shop", OutboxTable::default()).await;
    let proxy = Proxy::start(server.address()).expect("a free port");
    let (registry, recorder) = (Registry::new(), Recorder::new());
    let provider = service::meter_provider(&registry).expect("a provider");
    let config = RelayConfig::builder()
        .tenants(["acme"])
        .poll_interval(Duration::from_millis(20))
        .health_timeout(HEALTH_TIMEOUT)
        .store_timeout(Duration::from_millis(1_500))
        .build()
        .expect("valid");
    let relay = Relay::builder(database.store_on(Some(proxy.port())), recorder.clone(), config)
        .observer(MetricsObserver::new(&provider.meter("outbox")))
        .build()
        .expect("valid");
    let _running = relay.start().expect("there is a runtime");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let router = service::router(relay.health(), registry);
    tokio::spawn(async move { axum::serve(listener, router).await });

    let publishes = async |count: usize| {
        let acme = TenantId::new("acme").expect("a tenant id");
        let message = NewMessage::new(acme, "order.placed", "order-1", "{}");
        database.append(&[message]).await.expect("appended");
        tokio::time::timeout(BOUND, recorder.wait_for_accepted(count)).await.expect("it is published");
    };
    assert_eq!(becomes(address, 200).await, "healthy\nacme: caught up\n");
    publishes(1).await;

    proxy.freeze();
    for _ in 0..3 {
        let (status, body, took) = get(address, "/healthz").await;
        let silent = format!("the database did not answer within {} ms", HEALTH_TIMEOUT.as_millis());
        assert!(status == 503 && body.contains(&silent), "{status} {body}");
        // Long before the store's own deadline.
        assert!(took >= HEALTH_TIMEOUT && took < Duration::from_secs(20), "{took:?}");
    }
    let (status, metrics, _) = get(address, "/metrics").await;
    assert!(status == 200 && metrics.contains("outbox_relays_running"), "{metrics}");
    proxy.thaw();
    becomes(address, 200).await;
    publishes(2).await;

    server.crash().expect("it ran");
    let body = becomes(address, 503).await;
    assert!(!body.starts_with("healthy"), "{body}");
    let (status, ..) = get(address, "/metrics").await;
    assert_eq!(status, 200);
    server.start_again().expect("it starts");
    becomes(address, 200).await;
    publishes(3).await;
}
