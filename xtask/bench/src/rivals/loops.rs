//! The database's own loop: the same lock, read, mark and commit, on the server, with no client and no publisher.

use anyhow::Result;
use sqlx::PgConnection;

use crate::bed::Bed;

/// Makes the procedure.
pub(crate) async fn create_loop(bed: &Bed) -> Result<()> {
    bed.run(
        "CREATE OR REPLACE PROCEDURE public.bench_loop(tenants text[], batch int, remove boolean)
         LANGUAGE plpgsql AS $$
         DECLARE
             tenant text;
             ids bigint[];
             bytes bigint;
         BEGIN
             FOREACH tenant IN ARRAY tenants LOOP
                 LOOP
                     IF NOT pg_try_advisory_xact_lock(hashtext('public.outbox_message'), hashtext(tenant)) THEN
                         RAISE EXCEPTION 'tenant % is held', tenant;
                     END IF;
                     SELECT array_agg(id), sum(octet_length(payload)) INTO ids, bytes FROM (
                         SELECT id, payload FROM public.outbox_message
                         WHERE tenant_id >= tenant AND tenant_id <= tenant AND published_at IS NULL
                         ORDER BY tenant_id, id LIMIT batch
                     ) AS message;
                     IF ids IS NOT NULL THEN
                         IF remove THEN
                             DELETE FROM public.outbox_message WHERE id = ANY(ids);
                         ELSE
                             UPDATE public.outbox_message SET published_at = clock_timestamp()
                             WHERE id = ANY(ids) AND (published_at IS NULL) IS TRUE;
                         END IF;
                     END IF;
                     COMMIT;
                     EXIT WHEN ids IS NULL OR cardinality(ids) < batch;
                 END LOOP;
             END LOOP;
         END $$",
    )
    .await
}

/// Runs it until nothing is pending.
pub(crate) async fn run_loop(
    connection: &mut PgConnection,
    tenants: &[String],
    batch: i32,
    remove: bool,
) -> Result<()> {
    sqlx::query("CALL public.bench_loop($1, $2, $3)")
        .bind(tenants)
        .bind(batch)
        .bind(remove)
        .execute(connection)
        .await?;
    Ok(())
}
