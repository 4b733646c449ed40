//! Metrics, collected.

use std::collections::BTreeMap;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Metric, MetricData, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

/// A provider, read when a test says so.
pub(crate) struct Meters {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

/// What an instrument became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Counter,
    UpDownCounter,
    Gauge,
    Histogram,
}

/// One series.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) description: String,
    pub(crate) sort: Sort,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The value; of a histogram, the sum.
    pub(crate) value: f64,
    /// Of a histogram, how many values it has.
    pub(crate) count: u64,
    pub(crate) bounds: Vec<f64>,
}

impl Point {
    pub(crate) fn has(&self, attributes: &[(&str, &str)]) -> bool {
        attributes.iter().all(|(key, value)| self.attributes.get(*key).is_some_and(|has| has == value))
    }
}

impl Meters {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), exporter }
    }

    pub(crate) fn meter(&self) -> Meter {
        self.provider.meter("test")
    }

    /// Everything, as it is now.
    pub(crate) fn collect(&self) -> Vec<Point> {
        self.exporter.reset();
        self.provider.force_flush().expect("the exporter is in memory");
        let finished = self.exporter.get_finished_metrics().expect("the exporter is in memory");
        let scopes = finished.iter().flat_map(ResourceMetrics::scope_metrics);
        scopes.flat_map(ScopeMetrics::metrics).flat_map(points).collect()
    }

    /// The sum of a metric's series that have these attributes.
    pub(crate) fn total(&self, name: &str, attributes: &[(&str, &str)]) -> f64 {
        let points = self.collect();
        points.iter().filter(|point| point.name == name && point.has(attributes)).map(|p| p.value).sum()
    }

    /// As [`total`](Self::total), of what is counted in whole numbers.
    pub(crate) fn count(&self, name: &str, attributes: &[(&str, &str)]) -> u64 {
        whole(self.total(name, attributes))
    }

    /// The one series of a metric that has these attributes.
    pub(crate) fn one(&self, name: &str, attributes: &[(&str, &str)]) -> Option<f64> {
        let found: Vec<Point> =
            self.collect().into_iter().filter(|point| point.name == name && point.has(attributes)).collect();
        assert!(found.len() < 2, "more than one {name} with {attributes:?}: {found:#?}");
        found.first().map(|point| point.value)
    }
}

/// A count, which is no fraction and not below zero.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn whole(value: f64) -> u64 {
    assert!(value >= 0.0 && value.fract() == 0.0, "{value}");
    value as u64
}

fn points(metric: &Metric) -> Vec<Point> {
    match metric.data() {
        AggregatedMetrics::F64(data) => points_of(metric, data, |value| value),
        #[allow(clippy::cast_precision_loss)]
        AggregatedMetrics::U64(data) => points_of(metric, data, |value| value as f64),
        #[allow(clippy::cast_precision_loss)]
        AggregatedMetrics::I64(data) => points_of(metric, data, |value| value as f64),
    }
}

fn points_of<T: Copy>(metric: &Metric, data: &MetricData<T>, number: impl Fn(T) -> f64) -> Vec<Point> {
    let point = |sort, attributes: BTreeMap<String, String>, value, count, bounds| Point {
        name: metric.name().to_owned(),
        unit: metric.unit().to_owned(),
        description: metric.description().to_owned(),
        sort,
        attributes,
        value,
        count,
        bounds,
    };
    match data {
        MetricData::Gauge(gauge) => {
            let points = gauge.data_points();
            let points =
                points.map(|p| point(Sort::Gauge, texts(p.attributes()), number(p.value()), 0, Vec::new()));
            points.collect()
        }
        MetricData::Sum(sum) => {
            let sort = if sum.is_monotonic() { Sort::Counter } else { Sort::UpDownCounter };
            let points = sum.data_points();
            points.map(|p| point(sort, texts(p.attributes()), number(p.value()), 0, Vec::new())).collect()
        }
        MetricData::Histogram(histogram) => {
            let points = histogram.data_points().map(|p| {
                let (sum, bounds) = (number(p.sum()), p.bounds().collect());
                point(Sort::Histogram, texts(p.attributes()), sum, p.count(), bounds)
            });
            points.collect()
        }
        MetricData::ExponentialHistogram(_) => panic!("nobody asked for an exponential histogram"),
    }
}

fn texts<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> BTreeMap<String, String> {
    attributes.map(|pair| (pair.key.to_string(), pair.value.to_string())).collect()
}
