//! What a message costs on PostgreSQL, marked and deleted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use outbox_core::{Relay, Settling, Store};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::PostgresStore;
use sqlx::postgres::PgPoolOptions;

use super::{BATCH, Cost, ROWS, config, drain};
use crate::bed::{Bed, Filled};
use crate::ledger::Ledger;
use crate::stats::as_f64;
use crate::wire::Wire;

/// How many messages go out before it counts: the first claims prepare their statements and learn what the server is.
const FIRST: u64 = 2_000;

/// Counts a drain for each way to settle.
pub(super) async fn count(allocations: fn() -> u64) -> Result<[Cost; 2]> {
    // After a checkpoint the log has whole pages, as many as there happen to be.
    let bed = Bed::start(&[("autovacuum", "off"), ("full_page_writes", "off")]).await?;
    let marking = one(&bed, Settling::Mark, allocations).await?;
    Ok([marking, one(&bed, Settling::Delete, allocations).await?])
}

async fn one(bed: &Bed, settling: Settling, allocations: fn() -> u64) -> Result<Cost> {
    let wire = Wire::start(bed.server.address())?;
    let url = bed.server.url_by_port(wire.port(), "postgres");
    let pool = PgPoolOptions::new().max_connections(1).connect(&url).await?;
    let store = PostgresStore::new(pool.clone(), OutboxTable::default())?.with_settling(settling);
    let store: Arc<dyn Store> = Arc::new(store);
    let changed = bed.changes().await?;
    let filled = bed.fill(0, FIRST, 1).await?;
    drain_all(&store, filled).await?;

    let filled = bed.fill(0, ROWS, 1).await?;
    let (log, transactions) = (bed.log().await?, bed.transactions().await?);
    let (asked, allocated) = (wire.counted(), allocations());
    drain_all(&store, filled).await?;
    let (allocated, asked) = (allocations() - allocated, wire.counted().since(asked));
    let (log, transactions) = (bed.log().await? - log, bed.transactions().await? - transactions);
    bed.expect(filled, 0, if settling == Settling::Delete { 0 } else { ROWS }).await?;
    // A session tells the server's statistics what it did when it ends: here, what it did in both drains.
    pool.close().await;
    let both = FIRST + ROWS;
    let dead = bed.wait_for_changes(changed + i64::try_from(both)?).await? - changed;

    let (rows, batches) = (as_f64(ROWS), as_f64(ROWS) / f64::from(BATCH));
    let each = |count: i64, of: f64| as_f64(count.unsigned_abs()) / of;
    Ok(Cost {
        round_trips: as_f64(asked.round_trips) / batches,
        // The second look at the transactions is one itself.
        commits: each(transactions - 1, batches),
        wal_bytes: each(log, rows),
        dead_tuples: each(dead, as_f64(both)),
        allocations: as_f64(allocated) / rows,
    })
}

/// Publishes what the table was filled with.
async fn drain_all(store: &Arc<dyn Store>, filled: Filled) -> Result<()> {
    let ledger = Ledger::new(filled.first, usize::try_from(filled.rows)?, 1);
    let relay = Relay::builder(Arc::clone(store), ledger.clone(), config().build()?);
    drain(&relay.build()?, &ledger, filled.rows).await
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
