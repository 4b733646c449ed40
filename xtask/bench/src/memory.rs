//! How much memory a claim takes, where rows are large in a column that the database packs.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use outbox_core::{ClaimOutcome, ClaimRequest, Relay, RelayConfig, Settlement, Store, TenantId};
use serde_json::{Value, json};

use super::bed::Bed;
use super::counters::beside;
use super::ledger::Ledger;
use super::report::{Section, number};
use super::stats::as_f64;

/// How many rows are pending.
const ROWS: u64 = 300;
/// How many bytes of headers each row has, about.
const ROW: usize = 1_000_000;
/// The bound of a batch.
const BOUND: usize = 1_048_576;

/// The most memory that there was at a time, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// What a row has.
    pub row: usize,
    /// What a batch may have, by its bound.
    pub bound: usize,
    /// During one claim.
    pub claim: usize,
    /// While a relay published all of them.
    pub relay: usize,
}

impl Memory {
    /// Measures. `most` answers the most memory since it was last asked, and how much there is now.
    ///
    /// # Errors
    /// If a server cannot be started, or anything was published wrongly.
    pub fn measure(most: fn() -> (usize, usize)) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(measured(most))
    }

    /// What a claim may take: twice what a batch may have, which is its bound and the row that reaches it; once as the
    /// driver reads it, once as messages.
    pub fn of_a_claim(&self) -> usize {
        2 * (self.bound + self.row)
    }

    /// What a relay may take, one tenant at a time: a row more, for a connection keeps the room that it read one into.
    pub fn of_a_relay(&self) -> usize {
        self.of_a_claim() + self.row
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({ "row": self.row, "bound": self.bound, "claim": self.claim, "relay": self.relay })
    }
}

async fn measured(most: fn() -> (usize, usize)) -> Result<Memory> {
    let bed = Bed::start(&[]).await?;
    // The first claim learns what the server is, and prepares its statements.
    for (tenant, rows, bytes) in [("first", 1, 1), ("tenant-0", ROWS, ROW)] {
        bed.run(format!(
            "INSERT INTO public.outbox_message (tenant_id, kind, subject_id, headers)
             SELECT '{tenant}', 'order.placed', 'order-1', jsonb_build_object('text', repeat('x', {bytes}))
             FROM generate_series(1, {rows})"
        ))
        .await?;
    }
    let store: Arc<dyn Store> = Arc::new(bed.store(2).await?);
    claim(&store, "first").await?;
    let (_, before) = most();
    ensure!(claim(&store, "tenant-0").await? == 2, "a batch has a row that is below the bound, and the next");
    let (claim, _) = most();

    let ledger = Ledger::new(2, usize::try_from(ROWS)?, 1);
    let config = RelayConfig::builder().tenants(["tenant-0"]).max_batch_bytes(BOUND).build()?;
    let relay = Relay::builder(store, ledger.clone(), config).build()?;
    let (_, idle) = most();
    let report = relay.drain().await?;
    let (relay, _) = most();
    ensure!(report.is_complete() && report.published == ROWS, "the drain was not complete: {report:?}");
    ledger.check()?;
    Ok(Memory { row: ROW, bound: BOUND, claim: claim - before, relay: relay - idle })
}

/// Claims a tenant and gives it back; answers how many messages there were.
async fn claim(store: &Arc<dyn Store>, tenant: &str) -> Result<usize> {
    let limit = 1_000.try_into()?;
    let request = ClaimRequest::new(TenantId::new(tenant)?, limit).with_max_bytes(BOUND);
    let ClaimOutcome::Claimed(claimed) = store.claim(&request).await? else { anyhow::bail!("held") };
    let messages = claimed.messages.len();
    claimed.claim.settle(Settlement::release()).await?;
    Ok(messages)
}

/// The part of the bench: a program whose allocator knows the most that there was does the measuring.
pub(super) fn section() -> Result<Vec<Section>> {
    let memory = beside("memory")?;
    let read = |name: &str| -> Result<usize> {
        let bytes = memory[name].as_u64().with_context(|| format!("no {name} in {memory}"))?;
        Ok(usize::try_from(bytes)?)
    };
    let (row, bound) = (read("row")?, read("bound")?);
    let memory = Memory { row, bound, claim: read("claim")?, relay: read("relay")? };
    let mebibytes = |bytes: usize| as_f64(bytes as u64) / 1_048_576.0;
    let mut section = Section::new(
        "Memory of a claim",
        format!(
            "The most that was allocated at a time, beyond what there was before. {ROWS} rows of one tenant on \
             PostgreSQL, each with {} bytes of headers and without a payload, packed to a hundredth on the disk; \
             `max_batch_bytes` is 1 MiB.",
            number(as_f64(ROW as u64))
        ),
        &["what", "MiB"],
    );
    for (what, allowed, bytes) in [
        ("a claim", memory.of_a_claim(), memory.claim),
        ("a relay that publishes all of them", memory.of_a_relay(), memory.relay),
    ] {
        section.row([what.to_owned(), number(mebibytes(bytes))]);
        section.at_most(what, mebibytes(allowed), mebibytes(bytes), "MiB");
    }
    Ok(vec![section])
}
