//! What a claim, a probe and a health check cost as the table grows, and in the states that make a plain relay slow.

mod snapshot;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use outbox_core::{
    ClaimOutcome, ClaimRequest, HealthCheck, ProbeRequest, RelayConfig, Settlement, Store, TenantId, Tenants,
};
use outbox_sqlx::postgres::{PostgresStore, Watermark};

use super::Bench;
use super::bed::{Bed, tenants};
use super::ledger::{Ledger, publish};
use super::report::{Section, number, times};
use super::stats::{as_f64, median, millis};

/// How often each is measured.
const TRIES: usize = 21;
/// How many messages a claim asks for.
const BATCH: NonZeroU32 = NonZeroU32::new(32).unwrap();
/// What "flat" is: no more than so many times the time that it is compared with.
const FLAT: f64 = 2.0;

/// The times of one state of the table, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    claim: f64,
    probe: f64,
    health: f64,
}

struct Look<'a> {
    bench: &'a Bench<'a>,
    store: PostgresStore,
    section: Section,
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Section>> {
    let (few, many) = (10_000, bench.size(200_000, 2_000_000));
    let published = bench.size(200_000, 5_000_000);
    let drained = bench.size(100_000, 1_000_000);
    // Nothing is vacuumed but where a line says so. What is committed may be lost here with the machine: how it got
    // there is not what is measured.
    let bed = Bed::start(&[("autovacuum", "off"), ("fsync", "off")]).await?;
    let section = Section::new(
        "Cost as work grows",
        format!(
            "Medians of {TRIES}: a claim of {BATCH} with its release, a probe, a health check; the first probe apart, \
             for it clears up for those after it. Published rows are kept. No vacuum runs but where it is said, and nothing \
             is flushed to the disk."
        ),
        &["state", "claim ms", "probe ms", "first probe ms", "health ms", "to", "claim", "probe", "health"],
    );
    let mut look = Look { bench, store: bed.store(6).await?, section };
    let rows = |rows: u64| number(as_f64(rows));

    bed.fill(0, few, 1).await?;
    // Connections, statements and what the server reads once are not what is measured.
    let tenant = TenantId::new("tenant-0")?;
    for _ in 0..TRIES {
        claim(&look.store, &tenant).await?;
        look.store.probe(&ProbeRequest::new(Tenants::Discovered)).await?;
    }
    let small = look.at(&format!("1: {} pending", rows(few)), 1, None).await?;
    let base = Some(("1", small));
    bed.append(many - few, 1, false).await?;
    look.at(&format!("2: {} pending", rows(many)), 1, base).await?;
    bed.fill(published, few, 1).await?;
    look.at(&format!("3: {} pending, {} published", rows(few), rows(published)), 1, base).await?;
    bed.append(many - few, 1, false).await?;
    look.at(&format!("4: {} pending, {} published", rows(many), rows(published)), 1, base).await?;
    bed.run("ANALYZE public.outbox_message").await?;
    look.at("5: as 4, after an ANALYZE in the backlog", 1, base).await?;

    bed.fill(0, 50, 10).await?;
    let ten = look.at("6: 10 tenants, all pending", 10, None).await?;
    look.at("7: 10,000 tenants, 10 pending", 10_000, Some(("6", ten))).await?;

    let filled = bed.fill(0, drained, 10).await?;
    let ledger = Ledger::new(filled.first, usize::try_from(drained)?, 10);
    publish(Arc::new(look.store.clone()), &tenants(10), &ledger, |config| config).await?;
    bed.expect(filled, 0, drained).await?;
    bed.append(50, 10, false).await?;
    look.at(&format!("8: as 6, right after {} were drained", rows(drained)), 10, Some(("6", ten))).await?;
    bed.run("VACUUM public.outbox_message").await?;
    look.at("9: as 8, vacuumed", 10, Some(("6", ten))).await?;

    // One tenant, whose dead entries are all before its first that is pending.
    bed.fill(0, 50, 1).await?;
    let one = look.at("10: 50 pending of 1 tenant", 1, None).await?;
    let base = Some(("10", one));
    drain(&bed, &look.store, drained).await?;
    look.at(&format!("11: as 10, right after {} were drained", rows(drained)), 1, base).await?;
    // Another one: the ids begin anew with each table.
    look.store = bed.store(6).await?.with_watermark(Watermark::default());
    drain(&bed, &look.store, drained).await?;
    look.at("12: as 11, with a watermark", 1, base).await?;

    let section = look.section;
    Ok(vec![section, snapshot::measure(bench).await?])
}

/// Drains so many rows of one tenant, and appends 50 that are pending.
async fn drain(bed: &Bed, store: &PostgresStore, rows: u64) -> Result<()> {
    let filled = bed.fill(0, rows, 1).await?;
    let ledger = Ledger::new(filled.first, usize::try_from(rows)?, 1);
    publish(Arc::new(store.clone()), &tenants(1), &ledger, |config| config).await?;
    bed.expect(filled, 0, rows).await?;
    bed.append(50, 1, false).await
}

impl Look<'_> {
    /// Measures a state; it is to be as cheap as the one that it is compared with.
    async fn at(&mut self, state: &str, known: usize, base: Option<(&str, Times)>) -> Result<Times> {
        let names = tenants(known);
        let config = RelayConfig::builder().tenants(names.iter()).build()?;
        let health = HealthCheck::new(self.store.clone(), &config);
        let request = ProbeRequest::new(config.tenants.clone());
        let tenant = TenantId::new("tenant-0")?;
        let (mut claims, mut probes, mut checks) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TRIES {
            let begin = Instant::now();
            let oldest = self.store.probe(&request).await?.oldest;
            probes.push(millis(begin.elapsed()));
            ensure!(!oldest.is_empty(), "the probe found nothing");
            claims.push(claim(&self.store, &tenant).await?);
            let begin = Instant::now();
            let report = health.check().await;
            checks.push(millis(begin.elapsed()));
            ensure!(report.tenants.len() == known, "the health check does not know its tenants: {report}");
        }
        let first = probes.first().copied().unwrap_or_default();
        let found = Times { claim: median(&claims), probe: median(&probes), health: median(&checks) };
        self.bench.progress.tell(&format!("growth, {state}: {found:?}"));
        let of = base.map_or(found, |(_, base)| base);
        self.section.row([
            state.to_owned(),
            number(found.claim),
            number(found.probe),
            number(first),
            number(found.health),
            base.map_or_else(String::new, |(name, _)| name.to_owned()),
            times(found.claim, of.claim),
            times(found.probe, of.probe),
            times(found.health, of.health),
        ]);
        if base.is_some() {
            let worst = [found.claim / of.claim, found.probe / of.probe, found.health / of.health];
            self.section.at_most(state, FLAT, worst.into_iter().fold(0.0, f64::max), "times");
        }
        Ok(found)
    }
}

/// How long a claim and its release take, in milliseconds.
async fn claim(store: &PostgresStore, tenant: &TenantId) -> Result<f64> {
    let request = ClaimRequest::new(tenant.clone(), BATCH);
    let begin = Instant::now();
    let ClaimOutcome::Claimed(claimed) = store.claim(&request).await? else { bail!("{tenant} is held") };
    ensure!(!claimed.messages.is_empty(), "the claim found nothing");
    claimed.claim.settle(Settlement::release()).await?;
    Ok(millis(begin.elapsed()))
}
