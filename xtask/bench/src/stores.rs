//! How fast a backlog goes out of every store, on whichever database and ORM.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use outbox_core::{ProbeRequest, Tenants};

use super::Bench;
use super::bed::{Bed, PAYLOAD, tenants};
use super::cpu::Cpu;
use super::drain::Run;
use super::lanes::{self, Lane};
use super::ledger::{Ledger, publish};
use super::report::{Section, number};
use super::stats::{as_f64, median};

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let (rows, repetitions) = (bench.size(5_000, 50_000), bench.size(3, 5));
    let mut section = Section::new(
        "Drain, every store",
        format!(
            "{} rows of {PAYLOAD} bytes and none before them, default settings, durable marks, medians of {repetitions}. \
             SQLite and memory have no server: what they do is the client's.",
            number(as_f64(rows as u64))
        ),
        &[
            "store",
            "rows/s, 1 tenant",
            "client µs/row, 1 tenant",
            "rows/s, 100 tenants",
            "client µs/row, 100 tenants",
        ],
    );
    let postgres = Arc::new(Bed::start(&[("autovacuum", "off")]).await?);
    let lanes = lanes::all(&postgres).await?;
    let mut runs: Vec<_> = lanes.iter().map(|_| [const { Vec::new() }; 2]).collect();
    for repetition in 1..=repetitions {
        for (lane, runs) in lanes.iter().zip(&mut runs) {
            for (count, runs) in [1, 100].into_iter().zip(runs) {
                let run = drain(lane, rows, count).await.with_context(|| lane.name)?;
                bench.progress.tell(&format!(
                    "drain {repetition}/{repetitions}, {count} tenants, {}: {} rows/s",
                    lane.name,
                    number(run.rate)
                ));
                runs.push(run);
            }
        }
    }
    for (lane, runs) in lanes.iter().zip(&runs) {
        let numbers = runs.iter().flat_map(|runs| {
            let middle = |value: fn(&Run) -> f64| median(&runs.iter().map(value).collect::<Vec<_>>());
            [middle(|run| run.rate), middle(|run| run.client)]
        });
        section.row([lane.name.to_owned()].into_iter().chain(numbers.map(number)));
    }
    Ok(section)
}

/// Every row goes out once, in order, and is marked.
async fn drain(lane: &Lane, rows: usize, count: usize) -> Result<Run> {
    let ledger = Ledger::of(lane.database.refill(rows, count).await?, count);
    let (cpu, begin) = (Cpu::now(None), Instant::now());
    publish(Arc::clone(&lane.store), &tenants(count), &ledger, |config| config).await?;
    let (took, used) = (begin.elapsed(), Cpu::now(None).used_since(cpu));
    let left = lane.store.probe(&ProbeRequest::new(Tenants::Discovered)).await?.oldest;
    ensure!(left.is_empty(), "something is pending after the drain: {left:?}");
    lane.database.expect_published(rows).await?;
    Ok(Run::of(rows as u64, took, used))
}
