//! A drain while another session keeps an old snapshot: the index entries of what was drained cannot be skipped then.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use outbox_sqlx::postgres::Watermark;

use crate::Bench;
use crate::bed::{Bed, PUBLISHED, tenants};
use crate::ledger::{Ledger, publish};
use crate::report::{Section, number, times};
use crate::rivals::relay_plainly;
use crate::stats::{as_f64, median, micros_each};

/// Who drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Plain,
    Relay32,
    Watermark32,
    RelayDefaults,
    WatermarkDefaults,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "the plain protocol, batch 32",
            Self::Relay32 => "relay, batch 32",
            Self::Watermark32 => "relay, batch 32, with a watermark",
            Self::RelayDefaults => "relay, default settings",
            Self::WatermarkDefaults => "relay, default settings, with a watermark",
        }
    }
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let rows = bench.size(20_000, 50_000);
    let repetitions = bench.size(1, 3);
    let bed = Bed::start(&[("autovacuum", "off")]).await?;
    let mut section = Section::new(
        "An old snapshot, held by another session",
        format!(
            "A drain of {} rows of one tenant, without and with it, one after the other; medians of {repetitions}.",
            number(as_f64(rows))
        ),
        &["variant", "rows/s", "rows/s with it", "slower", "server µs/row", "server µs/row with it"],
    );
    let all = [Who::Plain, Who::Relay32, Who::Watermark32, Who::RelayDefaults, Who::WatermarkDefaults];
    for who in all {
        let (mut frees, mut helds) = (Vec::new(), Vec::new());
        for _ in 0..repetitions {
            frees.push(drain(&bed, who, rows, false).await.with_context(|| who.name())?);
            helds.push(drain(&bed, who, rows, true).await.with_context(|| who.name())?);
        }
        let middle = |runs: &[(f64, f64)]| {
            let (rates, costs): (Vec<_>, Vec<_>) = runs.iter().copied().unzip();
            (median(&rates), median(&costs))
        };
        let (free, held) = (middle(&frees), middle(&helds));
        bench.progress.tell(&format!("old snapshot, {}: {} to {} rows/s", who.name(), free.0, held.0));
        section.row([
            who.name().to_owned(),
            number(free.0),
            number(held.0),
            times(free.0, held.0),
            number(free.1),
            number(held.1),
        ]);
        if matches!(who, Who::RelayDefaults | Who::WatermarkDefaults) {
            section.at_most(format!("{}, slower by", who.name()), 2.0, free.0 / held.0, "times");
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
    let store = match who {
        Who::Watermark32 | Who::WatermarkDefaults => store.with_watermark(Watermark::default()),
        _ => store,
    };
    let (cpu, begin) = (bed.cpu(), Instant::now());
    if who == Who::Plain {
        relay_plainly(&mut connection, &names, &ledger).await?;
    } else {
        let batch = if matches!(who, Who::Relay32 | Who::Watermark32) { 32 } else { 1_000 };
        publish(Arc::new(store), &names, &ledger, |config| config.max_batch(batch)).await?;
    }
    let (took, used) = (begin.elapsed(), bed.cpu().used_since(cpu));
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await?;
    ledger.check()?;
    bed.expect(filled, 0, filled.published + rows).await?;
    let server = used.server.map_or(f64::NAN, |server| micros_each(server, rows));
    Ok((as_f64(rows) / took.as_secs_f64(), server))
}
