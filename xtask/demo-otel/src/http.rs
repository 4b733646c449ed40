//! The shop: an HTTP handler that places an order and writes its message, within the request's span.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use demo::database::Database;
use demo::{TENANTS, subject};
use opentelemetry::trace::{FutureExt as _, SpanKind, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use outbox_core::{NewMessage, TenantId};
use outbox_otel::propagation::WithTraceContext as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The request that the shop serves.
pub(super) const REQUEST: &str = "POST /orders/{number}";

/// The shop, listening.
#[derive(Debug)]
pub(super) struct Shop {
    address: SocketAddr,
}

type Parts = (Arc<dyn Database>, SdkTracer);

impl Shop {
    /// Listens on a free port of this machine, as long as the runtime lives.
    pub(super) async fn serve(database: Arc<dyn Database>, tracer: SdkTracer) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/orders/{number}", post(order)).with_state((database, tracer));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Places an order, as a customer's browser does: over HTTP.
    pub(super) async fn order(&self, number: i64) -> Result<String> {
        let mut stream = TcpStream::connect(self.address).await?;
        let request = format!("POST /orders/{number} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("the shop's answer has no body")?;
        ensure!(head.starts_with("HTTP/1.1 201"), "the shop did not take the order: {answer}");
        Ok(body.to_owned())
    }
}

async fn order(
    State((database, tracer)): State<Parts>,
    Path(number): Path<i64>,
) -> Result<(StatusCode, String), (StatusCode, String)> {
    let span = tracer
        .span_builder(REQUEST)
        .with_kind(SpanKind::Server)
        .with_attributes([KeyValue::new("http.request.method", "POST"), KeyValue::new("order", number)])
        .start(&tracer);
    let placed = place(&*database, number).with_context(Context::new().with_span(span)).await;
    placed
        .map(|text| (StatusCode::CREATED, text))
        .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")))
}

/// The order and its message, in one transaction; the message carries the request's trace.
async fn place(database: &dyn Database, number: i64) -> Result<String> {
    let tenants = i64::try_from(TENANTS.len())?;
    let tenant = TENANTS[usize::try_from(number.rem_euclid(tenants))?];
    let message = NewMessage::new(TenantId::new(tenant)?, "order.placed", subject(number), "{}")
        .with_current_trace_context();
    let trace = message.headers.get("traceparent").unwrap_or("none").to_owned();
    let mut transaction = database.begin().await?;
    let id = transaction.place(number, &message).await?;
    transaction.commit().await?;
    Ok(format!("{} of {tenant} is row {id}, traceparent {trace}", subject(number)))
}
