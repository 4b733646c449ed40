//! How soon a message goes out that was committed while the relay had nothing to do, and what it costs writers to say
//! so.

mod commits;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use outbox_core::{Relay, RelayConfig};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::{PostgresListener, PostgresTable};

use super::Bench;
use super::arrivals::{Arrivals, Written, now};
use super::bed::Bed;
use super::lanes::{self, Lane};
use super::report::{Section, number};
use super::stats::quantile;
use super::writer::{Hint, Job, TENANT, Writer};

/// One message each.
const PAUSE: Duration = Duration::from_millis(100);
/// The relay's own default.
const POLL: Duration = Duration::from_millis(200);
/// A poll interval at which a probe still costs next to nothing.
const SHORT: Duration = Duration::from_millis(5);

/// How the relay hears of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It looks by itself.
    Polls(Duration),
    /// The writer tells it, outside of its transactions.
    Notifier,
    /// A trigger on the table tells it.
    Trigger,
    /// The writer is in its process and wakes it.
    Handle,
}

impl Way {
    /// Those that a store has.
    fn of(lane: &Lane) -> &'static [Self] {
        match lane.database.url() {
            None => &[Self::Handle],
            Some(url) if url.starts_with("postgres") => {
                &[Self::Polls(POLL), Self::Polls(SHORT), Self::Notifier, Self::Trigger, Self::Handle]
            }
            Some(_) => &[Self::Polls(POLL), Self::Polls(SHORT), Self::Handle],
        }
    }

    fn name(self) -> String {
        match self {
            Self::Polls(interval) => format!("polls each {} ms", interval.as_millis()),
            Self::Notifier => "LISTEN, woken by a notifier".to_owned(),
            Self::Trigger => "LISTEN, woken by a trigger".to_owned(),
            Self::Handle => "woken by a writer in its process".to_owned(),
        }
    }

    fn poll(self) -> Duration {
        if let Self::Polls(interval) = self { interval } else { POLL }
    }
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Section>> {
    let count = bench.size(6, 200);
    let mut section = Section::new(
        "From commit to publish",
        format!(
            "{count} messages, one each {} ms or so, an idle relay; from the answer to the writer's commit. The writer is \
             another process, except where it says otherwise. Commits are durable.",
            PAUSE.as_millis()
        ),
        &["store", "the relay", "p50 ms", "p99 ms"],
    );
    let bed = Arc::new(Bed::start(&[]).await?);
    for lane in lanes::all(&bed).await? {
        for way in Way::of(&lane) {
            let latencies = one_by_one(&lane, &bed, *way, count).await;
            let latencies = latencies.with_context(|| format!("{}, {}", lane.name, way.name()))?;
            add(bench, &mut section, lane.name, *way, &latencies);
        }
    }
    Ok(vec![section, commits::measure(bench, &bed).await?])
}

fn add(bench: &Bench<'_>, section: &mut Section, store: &str, way: Way, latencies: &[f64]) {
    let (middle, most) = (quantile(latencies, 0.5), quantile(latencies, 0.99));
    bench.progress.tell(&format!("latency, {store} {}: p50 {middle:.2} ms, p99 {most:.2} ms", way.name()));
    section.row([store.to_owned(), way.name(), number(middle), number(most)]);
    let what = |part: &str| format!("{store}, {}, {part}", way.name());
    if let Way::Polls(interval) = way {
        let interval = super::stats::millis(interval);
        section.at_most(what("p99"), interval + 10.0, most, "ms");
    } else {
        section.at_most(what("p50"), 2.0, middle, "ms");
        section.at_most(what("p99"), 10.0, most, "ms");
    }
}

/// The latencies of a store, in milliseconds. Each message came once, in order, and is marked.
async fn one_by_one(lane: &Lane, bed: &Bed, way: Way, count: usize) -> Result<Vec<f64>> {
    lane.database.refill(0, 1).await?;
    let latencies = match (way, lane.database.url()) {
        (Way::Handle, _) | (_, None) => woken(lane, count).await?,
        (Way::Trigger, Some(url)) => {
            let table = PostgresTable::new(OutboxTable::default())?;
            bed.run(table.notify_trigger_ddl()).await?;
            let latencies = polling(lane, &url, way, count).await;
            bed.run(table.drop_notify_trigger_ddl()).await?;
            latencies?
        }
        (_, Some(url)) => polling(lane, &url, way, count).await?,
    };
    lane.database.expect_published(count).await?;
    Ok(latencies)
}

/// The latencies of what another process writes, in milliseconds.
async fn polling(lane: &Lane, url: &str, way: Way, count: usize) -> Result<Vec<f64>> {
    let arrivals = Arrivals::new();
    let config = RelayConfig::builder().tenants([TENANT]).poll_interval(way.poll()).build()?;
    let relay = Relay::builder(Arc::clone(&lane.store), arrivals.clone(), config).build()?;
    let running = relay.start()?;
    let listening = if matches!(way, Way::Notifier | Way::Trigger) {
        let listener = PostgresListener::new(url.parse()?, &OutboxTable::default())?;
        Some(listener.start(relay.waker())?)
    } else {
        None
    };
    let hint = if way == Way::Notifier { Hint::Notifier } else { Hint::Nothing };
    let (written, _) = Writer::start(url, Job::Steady { count, pause: PAUSE }, hint)?.finish().await?;
    arrivals.wait(count).await?;
    drop(listening);
    running.stop().await?;
    arrivals.latencies(&written)
}

/// The latencies of what this process writes, which wakes the relay itself.
async fn woken(lane: &Lane, count: usize) -> Result<Vec<f64>> {
    let mut outbox = lane.database.outbox().await?;
    let arrivals = Arrivals::new();
    let config = RelayConfig::builder().tenants([TENANT]).build()?;
    let relay = Relay::builder(Arc::clone(&lane.store), arrivals.clone(), config).build()?;
    let running = relay.start()?;
    let mut written = Vec::with_capacity(count);
    for _ in 0..count {
        tokio::time::sleep(PAUSE).await;
        let id = outbox.append().await?;
        written.push(Written { id, at: now() });
        relay.wake();
    }
    arrivals.wait(count).await?;
    running.stop().await?;
    arrivals.latencies(&written)
}
