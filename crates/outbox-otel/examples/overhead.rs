//! What each observer costs for a message, beside a relay without one.
//!
//! `cargo run --release -p outbox-otel --all-features --example overhead`
//!
//! The store is in memory and the publisher does nothing, so that the observer is all the difference; with a
//! database and a broker the same nanoseconds are a far smaller part. Everything runs on one thread, and what
//! is measured is the processor time of that thread, so that other work on the machine does not count as the
//! observer's; the SDK's export has a thread of its own, and is left out. Rounds of all variants take turns,
//! and the median of each counts.

use std::error::Error;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use outbox_core::{
    Accepted, Delivery, NewMessage, PublishError, Publisher, Relay, RelayBuilder, RelayConfig, TenantId,
    async_trait,
};
use outbox_memory::MemoryStore;
use outbox_otel::propagation::{TRACEPARENT, WithTraceContext as _};
use outbox_otel::{MetricsObserver, TraceObserver, TracingObserver};
use rustix::time::{ClockId, clock_gettime};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

const MESSAGES: u32 = 20_000;
const ROUNDS: usize = 21;

struct Nowhere;

#[async_trait]
impl Publisher for Nowhere {
    async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
        Ok(Accepted)
    }
}

/// Takes spans and forgets them: what exporting costs is the exporter's.
#[derive(Debug)]
struct Forgets;

impl SpanExporter for Forgets {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        Ok(())
    }
}

struct Providers {
    meters: SdkMeterProvider,
    sampled: SdkTracerProvider,
    unsampled: SdkTracerProvider,
}

type Add = fn(RelayBuilder, &Providers) -> RelayBuilder;

const VARIANTS: [(&str, bool, Add); 7] = [
    ("no observer", false, |relay, _| relay),
    ("tracing, no subscriber", false, |relay, _| relay.observer(TracingObserver::new())),
    ("tracing, a subscriber that keeps spans", true, |relay, _| relay.observer(TracingObserver::new())),
    ("metrics", false, |relay, to| relay.observer(metrics(to))),
    ("trace, not sampled", false, |relay, to| relay.observer(trace(&to.unsampled))),
    ("trace, every span", false, |relay, to| relay.observer(trace(&to.sampled))),
    ("metrics, trace and tracing, every span", true, |relay, to| {
        relay.observer(metrics(to)).observer(trace(&to.sampled)).observer(TracingObserver::new())
    }),
];

fn metrics(providers: &Providers) -> MetricsObserver {
    MetricsObserver::new(&providers.meters.meter("outbox"))
}

fn trace(provider: &SdkTracerProvider) -> TraceObserver<opentelemetry_sdk::trace::SdkTracer> {
    TraceObserver::new(provider.tracer("outbox"))
}

/// A table of messages, each with the trace context of its writer.
fn filled() -> Result<MemoryStore, Box<dyn Error>> {
    let store = MemoryStore::new();
    let tenant = TenantId::new("acme")?;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let message = |n| {
        NewMessage::new(tenant.clone(), "order.placed", format!("order-{n}"), [b'x'; 200].as_slice())
            .with_current_trace_context()
            .with_header(TRACEPARENT, parent)
    };
    store.append_all((0..MESSAGES).map(message));
    Ok(store)
}

/// How long this thread has been computing.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

async fn round(add: Add, keeps_spans: bool, providers: &Providers) -> Result<Duration, Box<dyn Error>> {
    let subscriber = || tracing_subscriber::registry().with(tracing_subscriber::layer::Identity::new());
    let _guard: Option<DefaultGuard> = keeps_spans.then(|| tracing::subscriber::set_default(subscriber()));
    let config = RelayConfig::builder().tenants(["acme"]).build()?;
    let relay = add(Relay::builder(filled()?, Nowhere, config), providers).build()?;
    let begin = processor_time();
    let report = relay.drain().await?;
    let took = processor_time().saturating_sub(begin);
    if !report.is_complete() {
        return Err(format!("not everything was published: {report:?}").into());
    }
    Ok(took)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let tracers =
        |sampler| SdkTracerProvider::builder().with_sampler(sampler).with_batch_exporter(Forgets).build();
    let reader = PeriodicReader::builder(InMemoryMetricExporter::default()).build();
    let providers = Providers {
        meters: SdkMeterProvider::builder().with_reader(reader).build(),
        sampled: tracers(Sampler::AlwaysOn),
        unsampled: tracers(Sampler::AlwaysOff),
    };
    let mut times = VARIANTS.map(|_| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for ((_, keeps_spans, add), times) in VARIANTS.iter().zip(&mut times) {
            times.push(round(*add, *keeps_spans, &providers).await?);
        }
    }
    let medians = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2].as_secs_f64() * 1e9 / f64::from(MESSAGES)
    });
    println!("| observer | ns a message | more | x |\n| --- | --- | --- | --- |");
    for ((name, ..), time) in VARIANTS.iter().zip(medians) {
        println!("| {name} | {time:.0} | {:.0} | {:.2} |", time - medians[0], time / medians[0]);
    }
    Ok(())
}
