//! A drain while another session keeps an old snapshot: the index entries of what was drained cannot be skipped then.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::bench::Bench;
use crate::bench::bed::{Bed, PUBLISHED, tenants};
use crate::bench::ledger::{Ledger, publish};
use crate::bench::report::{Section, number, times};
use crate::bench::rivals::relay_plainly;
use crate::bench::stats::{as_f64, micros_each};

/// Who drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Plain,
    Relay32,
    RelayDefaults,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "the plain protocol, batch 32",
            Self::Relay32 => "relay, batch 32",
            Self::RelayDefaults => "relay, default settings",
        }
    }
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let rows = bench.size(20_000, 50_000);
    let bed = Bed::start(&[("autovacuum", "off")]).await?;
    let mut section = Section::new(
        "An old snapshot, held by another session",
        format!(
            "A drain of {} rows of one tenant, without and with it, one after the other.",
            number(as_f64(rows))
        ),
        &["variant", "rows/s", "rows/s with it", "slower", "server µs/row", "server µs/row with it"],
    );
    for who in [Who::Plain, Who::Relay32, Who::RelayDefaults] {
        let free = drain(&bed, who, rows, false).await.with_context(|| who.name())?;
        let held = drain(&bed, who, rows, true).await.with_context(|| who.name())?;
        bench.progress.tell(&format!("old snapshot, {}: {} to {} rows/s", who.name(), free.0, held.0));
        section.row([
            who.name().to_owned(),
            number(free.0),
            number(held.0),
            times(free.0, held.0),
            number(free.1),
            number(held.1),
        ]);
        if who == Who::RelayDefaults {
            section.at_most("default settings, slower by", 2.0, free.0 / held.0, "times");
        }
    }
    Ok(section)
}

/// Rows in a second, and the server's microseconds for each.
async fn drain(bed: &Bed, who: Who, rows: u64, held: bool) -> Result<(f64, f64)> {
    let filled = bed.fill(PUBLISHED, rows, 1).await?;
    let mut other = bed.connect().await?;
    if held {
        let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
        sqlx::raw_sql(snapshot).execute(&mut other).await?;
    }
    let names = tenants(1);
    let ledger = Ledger::new(filled.first, usize::try_from(rows)?, 1);
    let (mut connection, store) = (bed.connect().await?, bed.store(6).await?);
    let (cpu, begin) = (bed.cpu(), Instant::now());
    if who == Who::Plain {
        relay_plainly(&mut connection, &names, &ledger).await?;
    } else {
        let batch = if who == Who::Relay32 { 32 } else { 1_000 };
        publish(Arc::new(store), &names, &ledger, |config| config.max_batch(batch)).await?;
    }
    let (took, used) = (begin.elapsed(), bed.cpu().used_since(cpu));
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await?;
    ledger.check()?;
    bed.expect(filled, 0, filled.published + rows).await?;
    let server = used.server.map_or(f64::NAN, |server| micros_each(server, rows));
    Ok((as_f64(rows) / took.as_secs_f64(), server))
}
