//! The global providers, in a process of their own: what was taken before they were set stays silent.

use opentelemetry::global;
use opentelemetry_sdk::metrics::data::{ResourceMetrics, ScopeMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use outbox_core::{NewMessage, Relay, RelayConfig, TenantId};
use outbox_memory::MemoryStore;
use outbox_otel::{MetricsObserver, TraceObserver};
use outbox_testkit::Recorder;

async fn relayed(metrics: MetricsObserver, trace: impl outbox_core::Observer) {
    let store = MemoryStore::new();
    store.append(NewMessage::new(
        TenantId::new("acme").expect("a tenant id"),
        "order.placed",
        "order-1",
        "{}",
    ));
    let config = RelayConfig::builder().tenants(["acme"]).build().expect("valid");
    let relay = Relay::builder(store, Recorder::new(), config).observer(metrics).observer(trace);
    assert!(relay.build().expect("valid").drain().await.expect("a drain").is_complete());
}

/// `global()` has the provider that is set when it is called, and no later one.
#[tokio::test]
async fn global_observers_have_the_provider_that_was_set_before_them() {
    let early = (MetricsObserver::global(), TraceObserver::global());
    let (metrics, spans) = (InMemoryMetricExporter::default(), InMemorySpanExporter::default());
    let reader = PeriodicReader::builder(metrics.clone()).build();
    let meters = SdkMeterProvider::builder().with_reader(reader).build();
    global::set_meter_provider(meters.clone());
    global::set_tracer_provider(SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build());
    let late = (MetricsObserver::global(), TraceObserver::global());

    relayed(early.0, early.1).await;
    meters.force_flush().expect("the exporter is in memory");
    let count = || {
        let finished = metrics.get_finished_metrics().expect("in memory");
        let scopes = finished.iter().flat_map(ResourceMetrics::scope_metrics);
        scopes.flat_map(ScopeMetrics::metrics).count()
    };
    assert_eq!(count(), 0);
    assert!(spans.get_finished_spans().expect("in memory").is_empty());

    relayed(late.0, late.1).await;
    meters.force_flush().expect("the exporter is in memory");
    assert!(count() > 5);
    assert_eq!(spans.get_finished_spans().expect("in memory").len(), 1);
}
