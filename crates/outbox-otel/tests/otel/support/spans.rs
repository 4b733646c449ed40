//! Spans, exported.

use std::collections::BTreeMap;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracer, SdkTracerProvider, SpanData};

/// A provider whose spans a test reads.
pub(crate) struct Spans {
    provider: SdkTracerProvider,
    exporter: InMemorySpanExporter,
}

impl Spans {
    pub(crate) fn new() -> Self {
        Self::sampled(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
    }

    pub(crate) fn sampled(sampler: Sampler) -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_sampler(sampler);
        Self { provider: provider.with_simple_exporter(exporter.clone()).build(), exporter }
    }

    pub(crate) fn tracer(&self) -> SdkTracer {
        self.provider.tracer("test")
    }

    /// Every span that ended, in that order.
    pub(crate) fn finished(&self) -> Vec<SpanData> {
        self.exporter.get_finished_spans().expect("the exporter is in memory")
    }

    /// Those whose name begins with `publish`.
    pub(crate) fn publishes(&self) -> Vec<SpanData> {
        self.finished().into_iter().filter(|span| span.name.starts_with("publish")).collect()
    }

    /// The only one of them.
    pub(crate) fn publish(&self) -> SpanData {
        let mut publishes = self.publishes();
        assert_eq!(publishes.len(), 1, "{publishes:#?}");
        publishes.remove(0)
    }
}

pub(crate) fn texts(span: &SpanData) -> BTreeMap<&str, String> {
    span.attributes.iter().map(|pair| (pair.key.as_str(), pair.value.to_string())).collect()
}
