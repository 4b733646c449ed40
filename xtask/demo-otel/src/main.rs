//! One trace from an HTTP request through the row to the subscriber, and the metrics, as a collector gets them.

mod check;
mod export;
mod http;
mod metrics;
mod receiver;
mod subscriber;
mod tree;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use demo::database::Database;
use demo::{Place, Story, TENANTS, on_sqlx, unless_interrupted};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use outbox_core::{Relay, RelayConfig};
use outbox_otel::{MetricsObserver, TraceObserver};
use servers::Folder;

use self::export::Exports;
use self::receiver::Receiver;
use self::subscriber::Mailer;

/// How many orders are placed, over HTTP.
const ORDERS: i64 = 4;
/// The order whose first delivery the subscriber refuses.
const REFUSED: &str = "order-3";
/// After how long an order that is not delivered is a fault.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the demo; answers whether all that should have arrived at the collector did.
async fn run() -> Result<bool> {
    let folder = Folder::new("demo-otel")?;
    unless_interrupted(play(&Story::begin(), folder.path())).await
}

async fn play(story: &Story, folder: &Path) -> Result<bool> {
    story.scene("A shop, its relay and a mailer; each exports over OTLP to a receiver");
    let collector = Receiver::start()?;
    story.tell("receiver", &format!("takes OTLP over gRPC on {}", collector.endpoint()));
    let exports = Exports::new(collector.endpoint())?;

    let place = Place::Sqlite(folder.join("shop.db"));
    let database: Arc<dyn Database> = on_sqlx::open(&place).await?.into();
    database.create().await?;
    let mailer = Mailer::new(story, exports.mailer.tracer("mailer"), REFUSED);
    let config = RelayConfig::builder().tenants(TENANTS).poll_interval(Duration::from_millis(50)).build()?;
    let relay = Relay::builder(database.store()?, mailer.clone(), config)
        .observer(MetricsObserver::new(&exports.meters.meter("outbox")))
        .observer(TraceObserver::new(exports.relay.tracer("outbox")))
        .build()?;
    let running = relay.start()?;

    let shop = http::Shop::serve(Arc::clone(&database), exports.shop.tracer("shop")).await?;
    story.tell("shop", &format!("serves POST /orders on {}", shop.address()));
    for number in 1..=ORDERS {
        let answer = shop.order(number).await?;
        story.tell("shop", &answer);
    }
    let delivered = tokio::time::timeout(PATIENCE, mailer.wait_for(ORDERS.unsigned_abs()));
    delivered.await.context("not every order was delivered")?;
    story.tell("relay", &format!("health: {}", relay.health().check().await));
    // A gauge shows what is now: those of tenants are gone with the relay.
    let exports = Arc::new(exports);
    let to_flush = Arc::clone(&exports);
    tokio::task::spawn_blocking(move || to_flush.meters.force_flush()).await??;
    running.stop().await?;

    // What is still on its way to the receiver arrives before this ends.
    tokio::task::spawn_blocking(move || exports.shut_down()).await??;
    let received = collector.stop();
    story.scene("The traces, as received");
    for line in tree::lines(&received.spans) {
        Story::line(&format!("        {line}"));
    }
    story.scene("The metrics, as received");
    for line in metrics::lines(&received.points) {
        Story::line(&format!("        {line}"));
    }
    Story::line("");
    let problems = check::problems(&received, ORDERS);
    if problems.is_empty() {
        let passed = story.paint("1;32", "CHECK PASSED");
        Story::line(&format!(
            "        {passed} in {:.1} s: each order is one trace from its request to the mailer, refusals included",
            story.seconds()
        ));
    } else {
        Story::line(&format!("        {}", story.paint("1;31", "CHECK FAILED")));
        for problem in &problems {
            Story::line(&format!("        {problem}"));
        }
    }
    Ok(problems.is_empty())
}
