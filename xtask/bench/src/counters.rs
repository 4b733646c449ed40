//! What each message costs, counted and not timed: the same on every machine, and so gated in CI.

mod relay;
mod store;

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outbox_core::{Relay, RelayConfig, RelayConfigBuilder};
use serde_json::{Value, json};

use super::ledger::Ledger;
use super::report::{Section, number};
use super::stats::as_f64;

/// How many messages are counted over.
const ROWS: u64 = 20_000;
/// How many messages a claim has.
const BATCH: u32 = 1_000;

/// What was counted over drains of 20,000 messages of 200 bytes in batches of 1,000.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// On PostgreSQL, where a published row is marked.
    pub marking: Cost,
    /// On PostgreSQL, where a published row is deleted.
    pub deleting: Cost,
    /// Allocations for each message in the relay alone: the same drain on the store in memory, without the rows' own.
    pub relay_allocations: f64,
    /// The same with [`Publishing::pipelined`](outbox_core::Publishing::pipelined), 32 in flight.
    pub pipelined_allocations: f64,
}

/// What was counted over one drain.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// How often a relay waits for an answer of the database, for each *batch*.
    pub round_trips: f64,
    /// How many transactions that wrote something commit, for each *batch*.
    pub commits: f64,
    /// Bytes of write-ahead log for each message, without the whole pages that follow a checkpoint.
    pub wal_bytes: f64,
    /// Row versions that vacuum has to remove, for each message.
    pub dead_tuples: f64,
    /// Allocations in the relay and its PostgreSQL store, for each message.
    pub allocations: f64,
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
            let [relay_allocations, pipelined_allocations] = relay::count(allocations).await?;
            let [marking, deleting] = store::count(allocations).await?;
            Ok(Self { marking, deleting, relay_allocations, pipelined_allocations })
        })
    }

    /// As JSON, which [`from_json`](Self::from_json) reads.
    pub fn json(&self) -> Value {
        json!({
            "marking": self.marking.json(),
            "deleting": self.deleting.json(),
            "relay_allocations": self.relay_allocations,
            "pipelined_allocations": self.pipelined_allocations,
        })
    }

    /// From what [`json`](Self::json) wrote.
    ///
    /// # Errors
    /// If a number is missing.
    pub fn from_json(value: &Value) -> Result<Self> {
        Ok(Self {
            marking: Cost::from_json(&value["marking"])?,
            deleting: Cost::from_json(&value["deleting"])?,
            relay_allocations: read(value, "relay_allocations")?,
            pipelined_allocations: read(value, "pipelined_allocations")?,
        })
    }
}

impl Cost {
    fn json(&self) -> Value {
        json!({
            "round_trips": self.round_trips,
            "commits": self.commits,
            "wal_bytes": self.wal_bytes,
            "dead_tuples": self.dead_tuples,
            "allocations": self.allocations,
        })
    }

    fn from_json(value: &Value) -> Result<Self> {
        Ok(Self {
            round_trips: read(value, "round_trips")?,
            commits: read(value, "commits")?,
            wal_bytes: read(value, "wal_bytes")?,
            dead_tuples: read(value, "dead_tuples")?,
            allocations: read(value, "allocations")?,
        })
    }

    fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("round trips of a batch", self.round_trips),
            ("commits of a batch", self.commits),
            ("WAL bytes of a message", self.wal_bytes),
            ("dead tuples of a message", self.dead_tuples),
            ("allocations of a message", self.allocations),
        ]
    }
}

fn read(value: &Value, name: &str) -> Result<f64> {
    value[name].as_f64().with_context(|| format!("no {name} in {value}"))
}

/// The part of the bench: a program whose allocator counts does the counting.
pub(super) fn section() -> Result<Vec<Section>> {
    let counters = Counters::from_json(&beside("counters")?)?;
    let mut on_postgres = Section::new(
        "What a message costs",
        format!(
            "Counted over {} messages in batches of {}, settled durably; the same on every machine. CI has a bound \
             for each.",
            number(as_f64(ROWS)),
            number(f64::from(BATCH))
        ),
        &["counter", "marking", "deleting"],
    );
    for ((name, marking), (_, deleting)) in
        counters.marking.named().into_iter().zip(counters.deleting.named())
    {
        on_postgres.row([name.to_owned(), number(marking), number(deleting)]);
    }
    let mut alone = Section::new(
        "What a message costs in the relay alone",
        "The same on the store in memory, without the rows' own allocations.",
        &["ordering", "allocations of a message"],
    );
    alone.row(["one after the other".to_owned(), number(counters.relay_allocations)]);
    alone.row([format!("pipelined, {} in flight", relay::IN_FLIGHT), number(counters.pipelined_allocations)]);
    Ok(vec![on_postgres, alone])
}

/// What a program says that is beside this one.
pub(super) fn beside(name: &str) -> Result<Value> {
    let program = std::env::current_exe()?.with_file_name(name);
    let output = Command::new(&program).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}: is it built?", program.display()))?;
    ensure!(output.status.success(), "{} ended with {}", program.display(), output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn config() -> RelayConfigBuilder {
    // A probe in between would count as well: there is one, at the start.
    let config = RelayConfig::builder().tenants(["tenant-0"]).poll_interval(Duration::from_mins(1));
    config.initial_batch(BATCH).max_batch(BATCH)
}

/// Publishes everything, and checks that it was so much, once each and in order.
async fn drain(relay: &Relay, ledger: &Ledger, rows: u64) -> Result<()> {
    let report = relay.drain().await?;
    ensure!(report.is_complete() && report.published == rows, "the drain was not complete: {report:?}");
    ledger.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the counting program writes is what the bench reads, and a number that is missing is told by its name.
    #[test]
    fn counters_survive_the_way_from_the_counting_program() {
        let cost = |wal_bytes| Cost {
            round_trips: 6.0,
            commits: 1.0,
            wal_bytes,
            dead_tuples: 1.0,
            allocations: 5.0,
        };
        let (marking, deleting) = (cost(400.0), cost(50.0));
        let counters = Counters { marking, deleting, relay_allocations: 0.1, pipelined_allocations: 0.2 };
        assert_eq!(Counters::from_json(&counters.json()).unwrap(), counters);
        let error = Counters::from_json(&json!({ "marking": cost(1.0).json(), "deleting": {} })).unwrap_err();
        assert!(error.to_string().contains("no round_trips"), "{error}");
    }
}
