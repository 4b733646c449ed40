//! What one tenant feels of the others: one has a million messages, the publisher of another hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_core::{Accepted, Delivery, NewMessage, PublishError, Publisher, Relay, RelayConfig, TenantId};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::PostgresTable;

use super::Bench;
use super::arrivals::{Arrivals, Written, now};
use super::bed::Bed;
use super::report::{Section, number, times};
use super::stats::{as_f64, quantile};

/// As [`Bed::fill`] calls the first tenant.
const BUSY: &str = "tenant-0";
const HANGING: &str = "hanging";
const QUIET: &str = "quiet";
/// How often the quiet tenant writes.
const INTERVAL: Duration = Duration::from_millis(20);
/// What "feels nothing" is.
const SLOWER: f64 = 2.0;

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Section>> {
    let backlog = bench.size(400_000, 1_000_000);
    let count = bench.size(50, 200);
    // The backlog is filled quickly; what is measured is the relay's turns.
    let bed = Bed::start(&[("fsync", "off")]).await?;
    let mut section = Section::new(
        "Fairness",
        format!(
            "{count} messages of one tenant, one each {} ms, committed in the relay's process; without other tenants, \
             and beside one with {} pending rows and one whose publisher hangs. Default settings; nothing is flushed to the disk.",
            INTERVAL.as_millis(),
            number(as_f64(backlog))
        ),
        &[
            "looking",
            "p50 ms alone",
            "p99 ms alone",
            "p50 ms beside them",
            "p99 ms beside them",
            "p99 to alone",
        ],
    );
    for (name, wakes) in [("at each poll", false), ("woken after the commit", true)] {
        let alone = run(&bed, count, wakes, 0).await?;
        let beside = run(&bed, count, wakes, backlog).await?;
        bench.progress.tell(&format!("fairness, {name}"));
        let quantiles = [(&alone, 0.5), (&alone, 0.99), (&beside, 0.5), (&beside, 0.99)];
        let [alone_50, alone_99, beside_50, beside_99] = quantiles.map(|(of, part)| quantile(of, part));
        let numbers = [alone_50, alone_99, beside_50, beside_99].map(number);
        section.row([name.to_owned()].into_iter().chain(numbers).chain([times(beside_99, alone_99)]));
        section.at_most(format!("p99 to alone, {name}"), SLOWER, beside_99 / alone_99, "times");
    }
    Ok(vec![section])
}

/// The quiet tenant's latencies, in milliseconds.
async fn run(bed: &Bed, count: usize, wakes: bool, backlog: u64) -> Result<Vec<f64>> {
    bed.fill(0, backlog, 1).await?;
    let table = PostgresTable::new(OutboxTable::default())?;
    let mut writer = bed.connect().await?;
    let message =
        |tenant: &str| Ok::<_, anyhow::Error>(NewMessage::new(TenantId::new(tenant)?, "kind", "s", "{}"));
    if backlog > 0 {
        table.append(&mut writer, &message(HANGING)?).await?;
    }
    let publisher = Mixed { arrivals: Arrivals::new(), busy: Arc::default(), hangs: Arc::default() };
    let config =
        RelayConfig::builder().tenants([BUSY, HANGING, QUIET]).stop_timeout(Duration::ZERO).build()?;
    let relay = Relay::builder(bed.store(6).await?, publisher.clone(), config).build()?;
    let running = relay.start()?;
    let mut written = Vec::with_capacity(count);
    let mut tick = tokio::time::interval(INTERVAL);
    for number in 0..count {
        tick.tick().await;
        // Not in step with the polls.
        tokio::time::sleep(Duration::from_micros(number as u64 * 7_919 % 9_000)).await;
        let id = table.append(&mut writer, &message(QUIET)?).await?.get();
        written.push(Written { id, at: now() });
        if wakes {
            relay.wake();
        }
    }
    publisher.arrivals.wait(count).await?;
    let (busy, hangs) = (publisher.busy.load(Ordering::Relaxed), publisher.hangs.load(Ordering::Relaxed));
    running.stop().await?;
    if backlog > 0 {
        ensure!(hangs == 1, "the hanging tenant was published {hangs} times");
        ensure!(
            busy > 0 && busy < backlog,
            "{busy} of {backlog} messages of the busy tenant went out meanwhile"
        );
    }
    publisher.arrivals.latencies(&written)
}

#[derive(Debug, Clone)]
struct Mixed {
    arrivals: Arrivals,
    busy: Arc<AtomicU64>,
    hangs: Arc<AtomicU64>,
}

#[async_trait]
impl Publisher for Mixed {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        match delivery.message.tenant_id.as_str() {
            QUIET => self.arrivals.publish(delivery).await,
            HANGING => {
                self.hangs.fetch_add(1, Ordering::Relaxed);
                std::future::pending().await
            }
            _ => {
                self.busy.fetch_add(1, Ordering::Relaxed);
                Ok(Accepted)
            }
        }
    }
}
