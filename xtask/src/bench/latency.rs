//! How soon a message goes out that was committed while the relay had nothing to do, and what it costs writers to say
//! so.

mod commits;

use std::time::Duration;

use anyhow::{Context, Result};
use outbox_core::{Relay, RelayConfig, Store};
use outbox_memory::MemoryStore;
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::{PostgresListener, PostgresTable};

use super::Bench;
use super::arrivals::{Arrivals, Written, now};
use super::bed::Bed;
use super::mariadb::MariaBed;
use super::report::{Section, number};
use super::sqlite::SqliteBed;
use super::stats::quantile;
use super::writer::{Hint, Job, Outbox, TENANT, Writer};

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
    let count = bench.size(30, 200);
    let mut section = Section::new(
        "From commit to publish",
        format!(
            "{count} messages, one each {} ms or so, an idle relay; from the answer to the writer's commit. The writer is \
             another process, except where it says otherwise. Commits are durable.",
            PAUSE.as_millis()
        ),
        &["store", "the relay", "p50 ms", "p99 ms"],
    );
    let bed = Bed::start(&[]).await?;
    let sqlite = SqliteBed::create().await?;
    let memory = MemoryStore::new();
    for way in [Way::Polls(POLL), Way::Polls(SHORT), Way::Notifier, Way::Trigger, Way::Handle] {
        bed.fill(0, 0, 1).await?;
        let latencies = on_postgres(&bed, way, count).await;
        add(bench, &mut section, "PostgreSQL", way, &latencies.with_context(|| way.name())?);
    }
    for way in [Way::Polls(POLL), Way::Polls(SHORT), Way::Handle] {
        sqlite.fill(0, 1).await?;
        let mut outbox = Outbox::open(&sqlite.url()).await?;
        let latencies = match way {
            Way::Handle => woken(sqlite.store()?, count, async || outbox.append().await).await,
            _ => polling(sqlite.store()?, &sqlite.url(), way, Hint::Nothing, count).await,
        };
        add(bench, &mut section, "SQLite", way, &latencies.with_context(|| way.name())?);
    }
    let mariadb = MariaBed::start().await?;
    for way in [Way::Polls(POLL), Way::Polls(SHORT), Way::Handle] {
        let mut outbox = Outbox::open(&mariadb.url()).await?;
        let latencies = match way {
            Way::Handle => woken(mariadb.store().await?, count, async || outbox.append().await).await,
            _ => polling(mariadb.store().await?, &mariadb.url(), way, Hint::Nothing, count).await,
        };
        add(bench, &mut section, "MariaDB", way, &latencies.with_context(|| way.name())?);
    }
    let append = async || {
        let tenant = outbox_core::TenantId::new(TENANT)?;
        anyhow::Ok(memory.append(outbox_core::NewMessage::new(tenant, "kind", "subject", "{}")).get())
    };
    let latencies = woken(memory.clone(), count, append).await?;
    add(bench, &mut section, "memory", Way::Handle, &latencies);
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

async fn on_postgres(bed: &Bed, way: Way, count: usize) -> Result<Vec<f64>> {
    let store = bed.store(6).await?;
    let url = bed.server.url("postgres");
    let table = PostgresTable::new(OutboxTable::default())?;
    match way {
        Way::Polls(_) => polling(store, &url, way, Hint::Nothing, count).await,
        Way::Notifier => polling(store, &url, way, Hint::Notifier, count).await,
        Way::Trigger => {
            bed.run(table.notify_trigger_ddl()).await?;
            let latencies = polling(store, &url, way, Hint::Nothing, count).await;
            bed.run(table.drop_notify_trigger_ddl()).await?;
            latencies
        }
        Way::Handle => {
            let mut outbox = Outbox::open(&url).await?;
            woken(store, count, async || outbox.append().await).await
        }
    }
}

/// The latencies of what another process writes, in milliseconds.
async fn polling(store: impl Store, url: &str, way: Way, hint: Hint, count: usize) -> Result<Vec<f64>> {
    let arrivals = Arrivals::new();
    let config = RelayConfig::builder().tenants([TENANT]).poll_interval(way.poll()).build()?;
    let relay = Relay::builder(store, arrivals.clone(), config).build()?;
    let running = relay.start()?;
    let listening = if matches!(way, Way::Notifier | Way::Trigger) {
        let listener = PostgresListener::new(url.parse()?, &OutboxTable::default())?;
        Some(listener.start(relay.waker())?)
    } else {
        None
    };
    let (written, _) = Writer::start(url, Job::Steady { count, pause: PAUSE }, hint)?.finish().await?;
    arrivals.wait(count).await?;
    drop(listening);
    running.stop().await?;
    arrivals.latencies(&written)
}

/// The latencies of what this process writes, which wakes the relay itself.
async fn woken(
    store: impl Store,
    count: usize,
    mut append: impl AsyncFnMut() -> Result<i64>,
) -> Result<Vec<f64>> {
    let arrivals = Arrivals::new();
    let config = RelayConfig::builder().tenants([TENANT]).build()?;
    let relay = Relay::builder(store, arrivals.clone(), config).build()?;
    let running = relay.start()?;
    let mut written = Vec::with_capacity(count);
    for _ in 0..count {
        tokio::time::sleep(PAUSE).await;
        let id = append().await?;
        written.push(Written { id, at: now() });
        relay.wake();
    }
    arrivals.wait(count).await?;
    running.stop().await?;
    arrivals.latencies(&written)
}
