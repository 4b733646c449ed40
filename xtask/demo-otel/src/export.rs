//! The OpenTelemetry SDK of each party: who it is, and where it exports to.

use anyhow::Result;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;

/// Providers by party.
#[derive(Debug)]
pub(super) struct Exports {
    pub(super) shop: SdkTracerProvider,
    pub(super) relay: SdkTracerProvider,
    pub(super) mailer: SdkTracerProvider,
    pub(super) meters: SdkMeterProvider,
}

impl Exports {
    /// Each exports to this receiver.
    pub(super) fn new(endpoint: &str) -> Result<Self> {
        let exporter = MetricExporter::builder().with_tonic().with_endpoint(endpoint).build()?;
        let meters = SdkMeterProvider::builder().with_resource(party("relay"));
        Ok(Self {
            shop: tracers("shop", endpoint)?,
            relay: tracers("relay", endpoint)?,
            mailer: tracers("mailer", endpoint)?,
            meters: meters.with_reader(PeriodicReader::builder(exporter).build()).build(),
        })
    }

    /// Exports what is left. It blocks.
    pub(super) fn shut_down(&self) -> Result<()> {
        for tracers in [&self.shop, &self.relay, &self.mailer] {
            tracers.shutdown()?;
        }
        Ok(self.meters.shutdown()?)
    }
}

fn tracers(name: &'static str, endpoint: &str) -> Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()?;
    Ok(SdkTracerProvider::builder().with_resource(party(name)).with_batch_exporter(exporter).build())
}

fn party(name: &'static str) -> Resource {
    Resource::builder_empty().with_service_name(name).build()
}
