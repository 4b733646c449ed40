//! What a message costs in the relay alone: on the store in memory, without the rows' own.

use anyhow::{Context, Result};
use outbox_core::{
    Inspect as _, MessageId, NewMessage, OrderedPublisher, PendingRequest, Publishing, Relay, TenantId,
};
use outbox_memory::MemoryStore;

use super::{ROWS, config, drain};
use crate::ledger::Ledger;
use crate::stats::as_f64;

/// How many messages are on their way at once, where it is more than one.
pub(super) const IN_FLIGHT: usize = 32;

/// It notes a message at the first poll of its future.
impl OrderedPublisher for Ledger {}

/// Allocations of a message, one after the other and pipelined.
pub(super) async fn count(allocations: fn() -> u64) -> Result<[f64; 2]> {
    let strict = one(allocations, Publishing::in_order).await?;
    let pipelined = one(allocations, |ledger| Publishing::pipelined(ledger, IN_FLIGHT)).await?;
    Ok([strict, pipelined])
}

async fn one(allocations: fn() -> u64, publishing: impl FnOnce(Ledger) -> Publishing) -> Result<f64> {
    let memory = MemoryStore::new();
    let tenant = TenantId::new("tenant-0")?;
    let message = |number: u64| {
        NewMessage::new(tenant.clone(), "order.placed", format!("order-{number}"), vec![b' '; 200])
    };
    let ids: Vec<i64> = memory.append_all((0..ROWS).map(message)).into_iter().map(MessageId::get).collect();
    let ledger = Ledger::of(ids, 1);
    // What it takes to read every row, which a store does in its own way.
    let before = allocations();
    let everything = std::num::NonZeroU32::new(u32::try_from(ROWS)?).context("no rows")?;
    drop(memory.pending(&PendingRequest::new(tenant.clone(), everything)).await?);
    let reading = allocations() - before;
    let before = allocations();
    let relay = Relay::builder(memory, publishing(ledger.clone()), config().build()?).build()?;
    drain(&relay, &ledger, ROWS).await?;
    let drained = allocations() - before;
    Ok(as_f64(drained.saturating_sub(reading)) / as_f64(ROWS))
}
