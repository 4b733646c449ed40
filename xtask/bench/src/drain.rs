//! How fast a backlog goes out: the relay, the database's own loop, and other ways to do it, in turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outbox_core::{Settling, Store};
use outbox_sqlx::postgres::Durability;
use sqlx::PgConnection;

use super::bed::{Bed, Filled, PAYLOAD, PUBLISHED, tenants};
use super::cpu::Used;
use super::lanes::CONNECTIONS;
use super::ledger::{Ledger, publish};
use super::report::{Section, number, times};
use super::stats::{as_f64, median, micros_each};
use super::{Bench, commit, rivals, stores};

/// The batch at which relay and loop are compared.
const BATCH: u32 = 1_000;
/// What the fastest ordered peer drains in a second, on a quiet machine, as it says itself.
const PEER: f64 = 64_000.0;

/// Who drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Loop,
    RelayAtBatch,
    RelayDefaults,
    RelayDeletes,
    RelayRelaxed,
    Plain,
    Cursor,
    DeletingLoop,
}

impl Who {
    const ALL: [Self; 8] = [
        Self::Loop,
        Self::RelayAtBatch,
        Self::RelayDefaults,
        Self::RelayDeletes,
        Self::RelayRelaxed,
        Self::Plain,
        Self::Cursor,
        Self::DeletingLoop,
    ];

    const ON_A_SLOW_DISK: [Self; 5] =
        [Self::Loop, Self::RelayAtBatch, Self::RelayDefaults, Self::RelayRelaxed, Self::Plain];

    fn name(self) -> &'static str {
        match self {
            Self::Loop => "the database's own loop, batch 1,000",
            Self::RelayAtBatch => "relay, batch 1,000",
            Self::RelayDefaults => "relay, default settings",
            Self::RelayDeletes => "relay, default settings, deleting",
            Self::RelayRelaxed => "relay, default settings, relaxed marks",
            Self::Plain => "the plain protocol, batch 32",
            Self::DeletingLoop => "the database's own loop, deleting",
            Self::Cursor => "one cursor moved, nothing marked",
        }
    }
}

/// Where a backlog is drained.
#[derive(Debug, Clone, Copy)]
struct Scene {
    tenants: usize,
    /// Whether a commit waits before it flushes, as long as many a disk takes to.
    slow_disk: bool,
    who: &'static [Who],
}

impl Scene {
    const ALL: [Self; 3] = [
        Self { tenants: 1, slow_disk: false, who: &Who::ALL },
        Self { tenants: 100, slow_disk: false, who: &Who::ALL },
        Self { tenants: 1, slow_disk: true, who: &Who::ON_A_SLOW_DISK },
    ];

    async fn bed(self) -> Result<Bed> {
        // It would come at one and not at the others; what its absence costs is measured in the part on growth.
        let mut settings = vec![("autovacuum", "off")];
        if self.slow_disk {
            settings.extend([("commit_delay", "4000"), ("commit_siblings", "0")]);
        }
        Bed::start(&settings).await
    }

    fn name(self) -> String {
        let tenants =
            if self.tenants == 1 { "1 tenant".to_owned() } else { format!("{} tenants", self.tenants) };
        if self.slow_disk { format!("{tenants}, a slow disk") } else { tenants }
    }
}

/// One drain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// Rows in a second.
    pub(super) rate: f64,
    /// Microseconds of CPU time for each row, of this process.
    pub(super) client: f64,
    /// The same of the server.
    server: f64,
}

/// Who drains, with what it needs and what it did.
struct Lane {
    who: Who,
    connection: PgConnection,
    store: Arc<dyn Store>,
    runs: Vec<Run>,
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Section>> {
    let rows = bench.size(10_000, 50_000);
    let repetitions = bench.size(3, 5);
    let mut sections = Vec::new();
    for scene in Scene::ALL {
        let bed = scene.bed().await?;
        rivals::create_loop(&bed).await?;
        let mut lanes = Vec::new();
        for &who in scene.who {
            let (connection, store) = (bed.connect().await?, bed.store(CONNECTIONS).await?);
            let store = match who {
                Who::RelayDeletes => store.with_settling(Settling::Delete),
                Who::RelayRelaxed => store.with_durability(Durability::Relaxed),
                _ => store,
            };
            lanes.push(Lane { who, connection, store: Arc::new(store), runs: Vec::new() });
        }
        let before = commit::price(&bed).await?;
        for repetition in 1..=repetitions {
            for lane in &mut lanes {
                let run = lane.drain(&bed, rows, scene.tenants).await.with_context(|| lane.who.name())?;
                bench.progress.tell(&format!(
                    "drain {repetition}/{repetitions}, {}, {}: {} rows/s",
                    scene.name(),
                    lane.who.name(),
                    number(run.rate)
                ));
                lane.runs.push(run);
            }
        }
        let after = commit::price(&bed).await?;
        sections.push(section(scene, rows, repetitions, (before, after), &lanes));
    }
    sections.push(stores::measure(bench).await?);
    Ok(sections)
}

impl Lane {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn drain(&mut self, bed: &Bed, rows: u64, count: usize) -> Result<Run> {
        let filled = bed.fill(PUBLISHED, rows, count).await?;
        let names = tenants(count);
        let ledger = Ledger::new(filled.first, usize::try_from(rows)?, count);
        let (cpu, begin) = (bed.cpu(), Instant::now());
        match self.who {
            Who::Loop | Who::DeletingLoop => {
                let deletes = self.who == Who::DeletingLoop;
                rivals::run_loop(&mut self.connection, &names, BATCH.cast_signed(), deletes).await?;
            }
            Who::Plain => rivals::relay_plainly(&mut self.connection, &names, &ledger).await?,
            Who::Cursor => rivals::move_cursor(bed, &mut self.connection, &names, &ledger).await?,
            Who::RelayAtBatch => {
                publish(self.store(), &names, &ledger, |config| config.initial_batch(BATCH).max_batch(BATCH))
                    .await?;
            }
            Who::RelayDefaults | Who::RelayDeletes | Who::RelayRelaxed => {
                publish(self.store(), &names, &ledger, |config| config).await?;
            }
        }
        let (took, used) = (begin.elapsed(), bed.cpu().used_since(cpu));
        self.check(bed, filled, &ledger).await?;
        Ok(Run::of(rows, took, used))
    }

    /// Every row went out once, in order, and is marked or gone; the cursor marks none, and a loop publishes none.
    async fn check(&self, bed: &Bed, filled: Filled, ledger: &Ledger) -> Result<()> {
        if !matches!(self.who, Who::Loop | Who::DeletingLoop) {
            ledger.check()?;
        }
        if self.who == Who::Cursor {
            let last = "SELECT max(last) FROM public.bench_cursor";
            let end = filled.first + i64::try_from(filled.rows)? - 1;
            ensure!(bed.number(last).await? == end, "the cursors are not at the end");
            return Ok(());
        }
        let kept = if matches!(self.who, Who::RelayDeletes | Who::DeletingLoop) { 0 } else { filled.rows };
        bed.expect(filled, 0, filled.published + kept).await
    }
}

impl Run {
    pub(super) fn of(rows: u64, took: Duration, used: Used) -> Self {
        Self {
            rate: as_f64(rows) / took.as_secs_f64(),
            client: micros_each(used.client, rows),
            server: used.server.map_or(f64::NAN, |server| micros_each(server, rows)),
        }
    }
}

fn section(scene: Scene, rows: u64, repetitions: usize, price: (f64, f64), lanes: &[Lane]) -> Section {
    let of = |who: Who| lanes.iter().find(|lane| lane.who == who).map_or(&[][..], |lane| &lane.runs);
    // Run by run: both were measured within seconds of each other.
    let ratio = |one: Who, other: Who| {
        let pairs = of(one).iter().zip(of(other));
        median(&pairs.map(|(one, other)| one.rate / other.rate).collect::<Vec<_>>())
    };
    let middle = |who: Who, value: fn(&Run) -> f64| median(&of(who).iter().map(value).collect::<Vec<_>>());
    let mut section = Section::new(
        format!("Drain, {}", scene.name()),
        format!(
            "{} rows of {PAYLOAD} bytes behind {} published ones, a publisher that accepts at once, durable marks, \
             medians of {repetitions}.{} A tiny durable commit took {} µs before and {} µs after.",
            number(as_f64(rows)),
            number(as_f64(PUBLISHED)),
            if scene.slow_disk { " Each commit waits 4 ms before it flushes (`commit_delay`)." } else { "" },
            number(price.0),
            number(price.1),
        ),
        &["variant", "rows/s", "to plain", "client µs/row", "server µs/row"],
    );
    for lane in lanes {
        let rate = middle(lane.who, |run| run.rate);
        section.row([
            lane.who.name().to_owned(),
            number(rate),
            times(ratio(lane.who, Who::Plain), 1.0),
            number(middle(lane.who, |run| run.client)),
            number(middle(lane.who, |run| run.server)),
        ]);
        section.bar(lane.who.name(), rate);
    }
    section.at_least("relay to loop, at equal batch", 0.9, ratio(Who::RelayAtBatch, Who::Loop), "");
    section.at_least("default settings to plain", 10.0, ratio(Who::RelayDefaults, Who::Plain), "");
    if scene.slow_disk {
        return section;
    }
    section.at_least("deleting to marking", 2.5, ratio(Who::RelayDeletes, Who::RelayDefaults), "");
    section.at_least("default settings", PEER, middle(Who::RelayDefaults, |run| run.rate), "rows/s");
    section.at_most(
        "client CPU to server CPU, default settings",
        0.1,
        middle(Who::RelayDefaults, |run| run.client / run.server),
        "",
    );
    section
}
