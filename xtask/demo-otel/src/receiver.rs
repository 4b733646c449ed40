//! A receiver for OTLP, in this process: it keeps what it gets.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span as ProtoSpan;
use tokio::task::JoinHandle;
use tonic::transport::{Server, server::TcpIncoming};
use tonic::{Request, Response, Status};

/// Attributes as text.
pub(super) type Attributes = BTreeMap<String, String>;

/// A span that was received.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) service: String,
    pub(super) trace: Vec<u8>,
    pub(super) id: Vec<u8>,
    pub(super) parent: Vec<u8>,
    pub(super) name: String,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) attributes: Attributes,
    pub(super) error: Option<String>,
}

/// A series that was received, as the last export that had it did.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) metric: String,
    pub(super) unit: String,
    pub(super) attributes: Attributes,
    /// The value; of a histogram, the sum.
    pub(super) value: f64,
    /// Of a histogram, how many values there were.
    pub(super) count: Option<u64>,
}

impl Point {
    fn is_series_of(&self, other: &Self) -> bool {
        self.metric == other.metric && self.attributes == other.attributes
    }
}

/// All that was received.
#[derive(Debug, Clone, Default)]
pub(super) struct Received {
    pub(super) spans: Vec<Span>,
    pub(super) points: Vec<Point>,
}

/// The receiver, listening.
#[derive(Debug)]
pub(super) struct Receiver {
    endpoint: String,
    received: Store,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

#[derive(Debug, Clone, Default)]
struct Store(Arc<Mutex<Received>>);

impl Receiver {
    /// Listens on a free port of this machine.
    pub(super) fn start() -> Result<Self> {
        let incoming = TcpIncoming::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let endpoint = format!("http://{}", incoming.local_addr()?);
        let received = Store::default();
        let server = Server::builder()
            .add_service(TraceServiceServer::new(received.clone()))
            .add_service(MetricsServiceServer::new(received.clone()));
        let task = tokio::spawn(server.serve_with_incoming(incoming));
        Ok(Self { endpoint, received, task })
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Stops listening and answers what came.
    pub(super) fn stop(self) -> Received {
        self.task.abort();
        self.received.lock().clone()
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl TraceService for Store {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut received = self.lock();
        for resource in request.into_inner().resource_spans {
            let own = resource.resource.map(|resource| texts(&resource.attributes)).unwrap_or_default();
            let service = own.get("service.name").cloned().unwrap_or_default();
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            received.spans.extend(spans.map(|span| read(service.clone(), span)));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Store {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let resources = request.into_inner().resource_metrics.into_iter();
        let metrics = resources.flat_map(|resource| resource.scope_metrics).flat_map(|scope| scope.metrics);
        let mut received = self.lock();
        // Everything is cumulative: the last export of a series has it all.
        for point in metrics.flat_map(points) {
            received.points.retain(|older| !older.is_series_of(&point));
            received.points.push(point);
        }
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

fn read(service: String, span: ProtoSpan) -> Span {
    let status = span.status.unwrap_or_default();
    let failed = status.code == 2;
    Span {
        service,
        trace: span.trace_id,
        id: span.span_id,
        parent: span.parent_span_id,
        name: span.name,
        begin: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        attributes: texts(&span.attributes),
        error: failed.then_some(status.message),
    }
}

fn points(metric: Metric) -> Vec<Point> {
    let Metric { name, unit, data, .. } = metric;
    let point = |attributes: &[KeyValue], value, count| Point {
        metric: name.clone(),
        unit: unit.clone(),
        attributes: texts(attributes),
        value,
        count,
    };
    let numbers = match data {
        Some(Data::Gauge(gauge)) => gauge.data_points,
        Some(Data::Sum(sum)) => sum.data_points,
        Some(Data::Histogram(histogram)) => {
            let points = histogram.data_points.into_iter();
            return points.map(|p| point(&p.attributes, p.sum.unwrap_or_default(), Some(p.count))).collect();
        }
        _ => Vec::new(),
    };
    numbers.iter().map(|p| point(&p.attributes, number(p.value.as_ref()), None)).collect()
}

#[allow(clippy::cast_precision_loss)]
fn number(value: Option<&number_data_point::Value>) -> f64 {
    match value {
        Some(number_data_point::Value::AsDouble(value)) => *value,
        Some(number_data_point::Value::AsInt(value)) => *value as f64,
        None => 0.0,
    }
}

fn texts(attributes: &[KeyValue]) -> Attributes {
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    };
    attributes.iter().map(|pair| (pair.key.clone(), text(pair))).collect()
}
