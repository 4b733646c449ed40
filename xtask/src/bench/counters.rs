//! What each message costs, counted and not timed: the same on every machine, and so gated in CI.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use outbox_core::{NewMessage, Relay, RelayConfig, Store, TenantId};
use outbox_memory::MemoryStore;
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::PostgresStore;
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;

use super::Bench;
use super::bed::Bed;
use super::ledger::Ledger;
use super::report::{Section, number};
use super::stats::as_f64;
use super::wire::Wire;

/// How many messages are counted over.
const ROWS: u64 = 20_000;
/// How many messages a claim has.
const BATCH: u32 = 1_000;

/// What was counted over a drain of 20,000 messages of 200 bytes in batches of 1,000, for each message.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// How often a relay waits for an answer of the database, for each *batch*.
    pub round_trips: f64,
    /// How many transactions that wrote something commit, for each *batch*.
    pub commits: f64,
    /// Bytes of write-ahead log, without the whole pages that follow a checkpoint.
    pub wal_bytes: f64,
    /// Row versions that vacuum has to remove.
    pub dead_tuples: f64,
    /// Allocations in the relay and its PostgreSQL store.
    pub allocations: f64,
    /// Allocations in the relay alone: the same drain on the store in memory, without the rows' own.
    pub relay_allocations: f64,
}

impl Counters {
    /// Counts. `allocations` answers how many allocations this process has made so far.
    ///
    /// # Errors
    /// If a server cannot be started, or anything was published wrongly.
    pub fn count(allocations: fn() -> u64) -> Result<Self> {
        // One thread: nothing else allocates meanwhile.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let relay_allocations = in_memory(allocations).await?;
            on_postgres(allocations, relay_allocations).await
        })
    }

    /// As JSON, which [`from_json`](Self::from_json) reads.
    pub fn json(&self) -> Value {
        json!({
            "round_trips": self.round_trips,
            "commits": self.commits,
            "wal_bytes": self.wal_bytes,
            "dead_tuples": self.dead_tuples,
            "allocations": self.allocations,
            "relay_allocations": self.relay_allocations,
        })
    }

    /// From what [`json`](Self::json) wrote.
    ///
    /// # Errors
    /// If a number is missing.
    pub fn from_json(value: &Value) -> Result<Self> {
        let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name} in {value}"));
        Ok(Self {
            round_trips: number("round_trips")?,
            commits: number("commits")?,
            wal_bytes: number("wal_bytes")?,
            dead_tuples: number("dead_tuples")?,
            allocations: number("allocations")?,
            relay_allocations: number("relay_allocations")?,
        })
    }

    fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("round trips of a batch", self.round_trips),
            ("commits of a batch", self.commits),
            ("WAL bytes of a message", self.wal_bytes),
            ("dead tuples of a message", self.dead_tuples),
            ("allocations of a message", self.allocations),
            ("allocations of a message, relay alone", self.relay_allocations),
        ]
    }
}

/// The part of the bench: a program whose allocator counts does the counting.
pub(super) fn section(bench: &Bench<'_>) -> Result<Vec<Section>> {
    let counters = Counters::from_json(&(bench.settings.counting)()?)?;
    let mut section = Section::new(
        "What a message costs",
        format!(
            "Counted over {} messages in batches of {}, marked durably; the same on every machine. CI has a bound \
             for each.",
            number(as_f64(ROWS)),
            number(f64::from(BATCH))
        ),
        &["counter", "value"],
    );
    for (name, value) in counters.named() {
        section.row([name.to_owned(), number(value)]);
    }
    Ok(vec![section])
}

async fn on_postgres(allocations: fn() -> u64, relay_allocations: f64) -> Result<Counters> {
    // After a checkpoint the log has whole pages, as many as there happen to be.
    let bed = Bed::start(&[("autovacuum", "off"), ("full_page_writes", "off")]).await?;
    let wire = Wire::start(bed.server.address())?;
    let url = bed.server.url_by_port(wire.port(), "postgres");
    let pool = PgPoolOptions::new().max_connections(1).connect(&url).await?;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::new(pool.clone(), OutboxTable::default())?);
    // The first claims prepare their statements and learn what the server is: they are not counted.
    one_drain(&bed, &store).await?;

    let filled = bed.fill(0, ROWS, 1).await?;
    let ledger = Ledger::new(filled.first, usize::try_from(ROWS)?, 1);
    let (log, transactions) = (bed.log().await?, bed.transactions().await?);
    let (asked, allocated) = (wire.counted(), allocations());
    drain(&store, &ledger).await?;
    let (allocated, asked) = (allocations() - allocated, wire.counted().since(asked));
    let (log, transactions) = (bed.log().await? - log, bed.transactions().await? - transactions);
    ledger.check()?;
    bed.expect(filled, 0, ROWS).await?;
    // A session tells the server's statistics what it did when it ends: here, what it did in both drains.
    pool.close().await;
    let dead = bed.wait_for_changes(i64::try_from(2 * ROWS)?).await?;

    let (rows, batches) = (as_f64(ROWS), as_f64(ROWS) / f64::from(BATCH));
    let each = |count: i64, of: f64| as_f64(count.unsigned_abs()) / of;
    Ok(Counters {
        round_trips: as_f64(asked.round_trips) / batches,
        // The second look at the transactions is one itself.
        commits: each(transactions - 1, batches),
        wal_bytes: each(log, rows),
        dead_tuples: each(dead, 2.0 * rows),
        allocations: as_f64(allocated) / rows,
        relay_allocations,
    })
}

async fn one_drain(bed: &Bed, store: &Arc<dyn Store>) -> Result<()> {
    let filled = bed.fill(0, ROWS, 1).await?;
    let ledger = Ledger::new(filled.first, usize::try_from(ROWS)?, 1);
    drain(store, &ledger).await?;
    ledger.check()
}

impl Bed {
    /// Bytes of write-ahead log since the cluster was made.
    async fn log(&self) -> Result<i64> {
        self.number("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").await
    }

    /// How many transactions have written something; this one counts as well.
    async fn transactions(&self) -> Result<i64> {
        self.number("SELECT pg_current_xact_id()::text::bigint").await
    }

    /// How many rows were updated or deleted, as far as sessions have told.
    async fn changes(&self) -> Result<i64> {
        self.number("SELECT n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE relname = 'outbox_message'")
            .await
    }

    async fn wait_for_changes(&self, expected: i64) -> Result<i64> {
        let waiting = async {
            loop {
                let changes = self.changes().await?;
                if changes >= expected {
                    return anyhow::Ok(changes);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let patience = Duration::from_secs(30);
        tokio::time::timeout(patience, waiting).await.context("the server never told what was changed")?
    }
}

async fn in_memory(allocations: fn() -> u64) -> Result<f64> {
    let memory = MemoryStore::new();
    let tenant = TenantId::new("tenant-0")?;
    let message = |number: u64| {
        NewMessage::new(tenant.clone(), "order.placed", format!("order-{number}"), vec![b' '; 200])
    };
    let ids = memory.append_all((0..ROWS).map(message));
    let first = ids.first().context("nothing was appended")?.get();
    let ledger = Ledger::new(first, usize::try_from(ROWS)?, 1);
    // What it takes to read every row, which a store does in its own way.
    let before = allocations();
    let everything = std::num::NonZeroU32::new(u32::try_from(ROWS)?).context("no rows")?;
    drop(memory.pending(&tenant, everything).await?);
    let reading = allocations() - before;
    let store: Arc<dyn Store> = Arc::new(memory);
    let before = allocations();
    drain(&store, &ledger).await?;
    let drained = allocations() - before;
    ledger.check()?;
    Ok(as_f64(drained.saturating_sub(reading)) / as_f64(ROWS))
}

async fn drain(store: &Arc<dyn Store>, ledger: &Ledger) -> Result<()> {
    let config = RelayConfig::builder().tenants(["tenant-0"]);
    // A probe in between would count as well: there is one, at the start.
    let config =
        config.initial_batch(BATCH).max_batch(BATCH).poll_interval(Duration::from_mins(1)).build()?;
    let relay = Relay::builder_shared(Arc::clone(store), Arc::new(ledger.clone()), config).build()?;
    let report = relay.drain().await?;
    anyhow::ensure!(
        report.is_complete() && report.published == ROWS,
        "the drain was not complete: {report:?}"
    );
    Ok(())
}
