//! A service that shows its outbox: `/healthz` for a probe, `/metrics` for Prometheus.

use std::error::Error;
use std::fmt::Write as _;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use outbox_core::{
    Accepted, Delivery, HealthCheck, PublishError, Publisher, Relay, RelayConfig, async_trait,
};
use outbox_memory::MemoryStore;
use outbox_otel::MetricsObserver;
use prometheus::{Registry, TextEncoder};

/// Metrics that are read when Prometheus asks.
///
/// # Errors
/// What the registry says, if the exporter's name is taken there.
pub fn meter_provider(registry: &Registry) -> Result<SdkMeterProvider, OTelSdkError> {
    let reader = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build()?;
    Ok(SdkMeterProvider::builder().with_reader(reader).build())
}

/// The two routes.
pub fn router(health: HealthCheck, registry: Registry) -> Router {
    let routes = Router::new().route("/healthz", get(healthz)).route("/metrics", get(metrics));
    routes.with_state((health, registry))
}

/// 200 or 503; the verdict on the first line, a tenant on each other one.
async fn healthz(State((health, _)): State<(HealthCheck, Registry)>) -> (StatusCode, String) {
    let report = health.check().await;
    let status = if report.is_healthy() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut text = format!("{report}\n");
    for (tenant, health) in &report.tenants {
        let _ = writeln!(text, "{tenant}: {health}");
    }
    (status, text)
}

async fn metrics(State((_, registry)): State<(HealthCheck, Registry)>) -> Result<String, StatusCode> {
    let text = TextEncoder::new().encode_to_string(&registry.gather());
    text.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

/// Stands for a broker.
struct Terminal;

#[async_trait]
impl Publisher for Terminal {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        println!("{} {}", delivery.message.kind, delivery.message.subject_id);
        Ok(Accepted)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::new();
    let provider = meter_provider(&registry)?;
    let config = RelayConfig::builder().tenants(["acme"]).build()?;
    let relay = Relay::builder(MemoryStore::new(), Terminal, config)
        .observer(MetricsObserver::new(&provider.meter("outbox")))
        .build()?;
    let running = relay.start()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:9464").await?;
    axum::serve(listener, router(relay.health(), registry)).await?;
    running.stop().await?;
    Ok(())
}
