//! What the fastest ordered peer does: it marks nothing and moves one cursor, a round trip for each batch. A lower id
//! that commits late is behind the cursor then, and never goes out.

use anyhow::{Result, ensure};
use sqlx::{PgConnection, Row};

use crate::bed::Bed;
use crate::ledger::Ledger;

/// How many messages a round trip brings.
const BATCH: i64 = 1_000;

/// Makes the table of cursors, empty.
async fn create(bed: &Bed) -> Result<()> {
    bed.run(
        "CREATE TABLE IF NOT EXISTS public.bench_cursor (tenant_id text PRIMARY KEY, last bigint NOT NULL);
         TRUNCATE public.bench_cursor",
    )
    .await
}

/// Reads every tenant behind its cursor until the ledger has everything; the last move is committed, too.
pub(crate) async fn move_cursor(
    bed: &Bed,
    connection: &mut PgConnection,
    tenants: &[String],
    ledger: &Ledger,
) -> Result<()> {
    create(bed).await?;
    for tenant in tenants {
        let mut last = 0_i64;
        loop {
            let rows = sqlx::query(
                "WITH moved AS (
                     INSERT INTO public.bench_cursor VALUES ($1, $2)
                     ON CONFLICT (tenant_id) DO UPDATE SET last = excluded.last
                 )
                 SELECT id, tenant_id, kind, subject_id, payload, occurred_at::text FROM public.outbox_message
                 WHERE tenant_id = $1 AND published_at IS NULL AND id > $2 ORDER BY id LIMIT $3",
            )
            .bind(tenant)
            .bind(last)
            .bind(BATCH)
            .fetch_all(&mut *connection)
            .await?;
            for row in &rows {
                last = row.try_get(0)?;
                let message: (String, String, String, Vec<u8>) =
                    (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
                std::hint::black_box(message);
                ledger.record(last);
            }
            if rows.is_empty() {
                break;
            }
        }
    }
    ensure!(ledger.is_complete(), "the cursors are at the end, and messages are missing");
    Ok(())
}
