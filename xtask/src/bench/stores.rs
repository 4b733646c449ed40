//! How fast a backlog goes out of every other store.

use std::time::Instant;

use anyhow::{Result, ensure};
use outbox_core::{MessageId, ProbeRequest, Store, Tenants};
use outbox_memory::MemoryStore;

use super::Bench;
use super::bed::{PAYLOAD, tenants};
use super::ledger::{Ledger, publish};
use super::mariadb::MariaBed;
use super::report::{Section, number};
use super::sqlite::{SqliteBed, messages};
use super::stats::{as_f64, median};

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let (rows, repetitions) = (bench.size(10_000, 50_000), bench.size(3, 5));
    let mut section = Section::new(
        "Drain, other stores",
        format!(
            "{} rows of {PAYLOAD} bytes, default settings, durable marks, medians of {repetitions}.",
            number(as_f64(rows as u64))
        ),
        &["store", "rows/s, 1 tenant", "rows/s, 100 tenants"],
    );
    let sqlite = SqliteBed::create().await?;
    let mariadb = MariaBed::start().await?;
    let mut rates = [const { [const { Vec::new() }; 2] }; 3];
    for _ in 0..repetitions {
        for (place, count) in [1, 100].into_iter().enumerate() {
            let [of_memory, of_sqlite, of_mariadb] = &mut rates;
            let memory = MemoryStore::new();
            let ids = memory.append_all(messages(rows, count)?).into_iter().map(MessageId::get).collect();
            of_memory[place].push(drain(memory, ids, count).await?);

            let ids = sqlite.fill(rows, count).await?;
            of_sqlite[place].push(drain(sqlite.store()?, ids, count).await?);
            sqlite.expect_drained().await?;

            let ids = mariadb.fill(rows, count).await?;
            of_mariadb[place].push(drain(mariadb.store().await?, ids, count).await?);
            mariadb.expect_drained().await?;
        }
    }
    for (name, [one, hundred]) in ["memory", "SQLite", "MariaDB"].into_iter().zip(&rates) {
        bench.progress.tell(&format!("drain, {name}: {} rows/s", number(median(one))));
        section.row([name.to_owned(), number(median(one)), number(median(hundred))]);
    }
    Ok(section)
}

/// Rows in a second.
async fn drain(store: impl Store + Clone, ids: Vec<i64>, count: usize) -> Result<f64> {
    let rows = ids.len();
    let ledger = Ledger::of(ids, count);
    let begin = Instant::now();
    publish(&store, &tenants(count), &ledger, |config| config).await?;
    let took = begin.elapsed();
    let left = store.probe(&ProbeRequest::new(Tenants::Discovered)).await?;
    ensure!(left.is_empty(), "something is pending after the drain: {left:?}");
    Ok(as_f64(rows as u64) / took.as_secs_f64())
}
