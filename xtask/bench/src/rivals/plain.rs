//! The plain protocol: small batches, one tenant after the other, a claim of five round trips for each batch, and a
//! claim of each tenant at each poll. No growth, no probe, nothing side by side.

use anyhow::{Result, ensure};
use sqlx::{PgConnection, Row};

use crate::ledger::Ledger;

/// How many messages a claim asks for.
const BATCH: i64 = 32;

/// Relays until the ledger has everything.
pub(crate) async fn relay_plainly(
    connection: &mut PgConnection,
    tenants: &[String],
    ledger: &Ledger,
) -> Result<()> {
    while !ledger.is_complete() {
        let mut moved = 0;
        for tenant in tenants {
            moved += sweep(connection, tenant, ledger).await?;
        }
        // A relay would rest here until its next poll; there is no backlog without progress.
        ensure!(moved > 0 || ledger.is_complete(), "nothing is pending, and messages are missing");
    }
    Ok(())
}

async fn sweep(connection: &mut PgConnection, tenant: &str, ledger: &Ledger) -> Result<usize> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let locked = sqlx::query_scalar::<_, bool>(
        "SELECT pg_try_advisory_xact_lock(hashtext('public.outbox_message'), hashtext($1))
         FROM set_config('idle_in_transaction_session_timeout', '0', true)",
    )
    .bind(tenant)
    .fetch_one(&mut *connection)
    .await?;
    ensure!(locked, "tenant {tenant} is held");
    let rows = sqlx::query(
        "SELECT id, tenant_id, kind, subject_id, payload, occurred_at::text FROM public.outbox_message
         WHERE tenant_id = $1 AND published_at IS NULL ORDER BY id LIMIT $2",
    )
    .bind(tenant)
    .bind(BATCH)
    .fetch_all(&mut *connection)
    .await?;
    let mut published = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: i64 = row.try_get(0)?;
        let message: (String, String, String, Vec<u8>) =
            (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        std::hint::black_box(message);
        ledger.record(id);
        published.push(id);
    }
    sqlx::query("UPDATE public.outbox_message SET published_at = now() WHERE id = ANY($1)")
        .bind(&published)
        .execute(&mut *connection)
        .await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(published.len())
}
