//! The plans of the statements that begin at a watermark: what they read is counted in pages, after a drain of which an
//! old snapshot keeps every entry.

use outbox_sql::postgres::PostgresStatements;
use outbox_sqlx::OutboxTable;
use outbox_suite::postgres::Database;
use sqlx::{AssertSqlSafe, Postgres, Row, Transaction};

use super::driver::driver;
use super::plans::{assert_cheap, backlog, plan};

/// Everything of ten tenants was drained but their last row each, and an old snapshot keeps what was: neither entries
/// nor rows may be forgotten. Answers the database, who holds the snapshot, and the watermark of tenant 3.
async fn drained() -> (Database, Transaction<'static, Postgres>, i64) {
    let database = Database::create(driver()).await;
    database.make(&OutboxTable::default()).await;
    database.run("ALTER TABLE outbox_message SET (autovacuum_enabled = off)").await;
    let insert = "INSERT INTO outbox_message (tenant_id, kind, subject_id)";
    database
        .run(format!("{insert} SELECT 't' || n % 10, 'k', 's' FROM generate_series(1, 60010) AS n"))
        .await;
    // Between and behind those with a watermark are others without one.
    database
        .run(format!("{insert} SELECT tenant, 'k', 's' FROM unnest('{{a,t3b,t3c,z}}'::text[]) AS tenant"))
        .await;
    let mut snapshot = database.admin.begin().await.unwrap();
    let look = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT FROM outbox_message LIMIT 1";
    sqlx::raw_sql(look).execute(&mut *snapshot).await.unwrap();
    database.run("UPDATE outbox_message SET published_at = now() WHERE id <= 60000").await;
    (database, snapshot, 59_993)
}

/// How many pages of the buffer cache a statement touched, in all.
fn pages(plan: &str) -> u64 {
    let hit = plan.lines().find_map(|line| line.trim().strip_prefix("Buffers: shared hit=")).unwrap();
    hit.split_whitespace().next().unwrap().parse().unwrap()
}

/// A claim that begins at a watermark begins to read there: the watermark is where the scan of the index starts, and
/// not what it filters by, whatever the planner thinks of the table. From zero it reads all that was drained.
#[tokio::test]
async fn a_claim_at_a_watermark_reads_nothing_of_what_was_drained() {
    let (database, snapshot, watermark) = drained().await;
    let statements = PostgresStatements::new(&OutboxTable::default()).unwrap();
    for state in ["SELECT 1", "ANALYZE outbox_message"] {
        database.run(state).await;
        for mode in ["force_custom_plan", "force_generic_plan"] {
            let (types, values) = ("(text, bigint, bigint)", "('t3', 32, 1000000)");
            // Once more: what one scan learned of dead entries, the next makes use of, if it may.
            plan(&database, &statements.claim, types, values, mode).await;
            let from_zero = plan(&database, &statements.claim, types, values, mode).await;
            assert!(pages(&from_zero) > 100, "{from_zero}");
            for (claim, types, values) in [
                (&statements.watermark.claim, "(text, bigint, bigint, bigint)", "('t3', 32, 1000000, {})"),
                (
                    &statements.watermark.claim_others,
                    "(text, bigint, bigint, text[], bigint)",
                    "('t3', 32, 1000000, '{{x}}', {})",
                ),
            ] {
                let values = values.replace("{}", &watermark.to_string()).replace("{{x}}", "{x}");
                let claim = plan(&database, claim, types, &values, mode).await;
                assert!(claim.contains("Index Cond: ((ROW(tenant_id, id) >= ROW("), "{claim}");
                assert!(claim.contains("outbox_message_tenant_id_id_idx"), "{claim}");
                assert!(!claim.contains("Rows Removed by Filter: "), "{claim}");
                assert!(pages(&claim) < 20, "{claim}");
            }
        }
    }
    snapshot.rollback().await.unwrap();
    database.drop().await;
}

/// In a backlog it reads its batch and nothing else, as the claim from zero does.
#[tokio::test]
async fn a_claim_at_a_watermark_reads_its_batch_and_nothing_else() {
    let database = backlog().await;
    let statements = PostgresStatements::new(&OutboxTable::default()).unwrap();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        for tenant in ["big", "t1", "nobody"] {
            let values = format!("('{tenant}', 32, 1000000, 60500)");
            let types = "(text, bigint, bigint, bigint)";
            assert_cheap(&plan(&database, &statements.watermark.claim, types, &values, mode).await);
            let values = format!("('{tenant}', 32, 1000000, '{{x}}', 60500)");
            let types = "(text, bigint, bigint, text[], bigint)";
            assert_cheap(&plan(&database, &statements.watermark.claim_others, types, &values, mode).await);
        }
    }
    database.drop().await;
}

/// A probe that is given watermarks passes over what was drained of these tenants, finds the others all the same,
/// and answers what one from zero does.
#[tokio::test]
async fn a_probe_with_watermarks_passes_over_what_was_drained() {
    let (database, snapshot, _) = drained().await;
    let statements = PostgresStatements::new(&OutboxTable::default()).unwrap();
    let answers = async |statement: &str, tenants: Vec<String>, ids: Vec<i64>| {
        let mut query = sqlx::query(AssertSqlSafe(statement.to_owned()));
        if statement.contains("$1") {
            query = query.bind(tenants).bind(ids);
        }
        let rows = query.fetch_all(&database.admin).await.unwrap();
        // The row of the server has no id.
        let of_tenants = rows.iter().filter(|row| row.get::<Option<i64>, _>(1).is_some());
        let mut rows: Vec<(String, i64, i64)> =
            of_tenants.map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        rows.sort();
        rows
    };
    let expected = answers(&statements.probe, vec![], vec![]).await;
    assert_eq!(expected.len(), 14);
    let all: Vec<(String, i64)> =
        (0..10).map(|n| (format!("t{n}"), 59_990 + if n == 0 { 10 } else { n })).collect();
    let named: (Vec<String>, Vec<i64>) =
        [("t3", 59_993), ("t3", 59_993), ("t4", i64::MIN), ("none", 7), ("z", 7)]
            .map(|(tenant, id)| (tenant.to_owned(), id))
            .into_iter()
            .unzip();
    let found = answers(&statements.watermark.probe_named, named.0, named.1).await;
    assert!(
        found.iter().eq(expected.iter().filter(|(tenant, ..)| ["t3", "t4", "z"].contains(&&**tenant))),
        "{found:?}"
    );
    // In no order; with one that has nothing, before, between and behind.
    for extra in ["0", "t3bb", "zz"] {
        for count in [0, 1, 5, 10] {
            let (mut tenants, mut ids): (Vec<_>, Vec<_>) = all.iter().rev().take(count).cloned().unzip();
            tenants.push(extra.to_owned());
            ids.push(70_000);
            assert_eq!(answers(&statements.watermark.probe, tenants, ids).await, expected, "{extra} {count}");
        }
    }
    let (tenants, ids): (Vec<_>, Vec<_>) =
        all.into_iter().map(|(tenant, id)| (tenant, id.to_string())).unzip();
    let values = format!("('{{{}}}', '{{{}}}')", tenants.join(","), ids.join(","));
    for state in ["SELECT 1", "ANALYZE outbox_message"] {
        database.run(state).await;
        for mode in ["force_custom_plan", "force_generic_plan"] {
            let probe =
                plan(&database, &statements.watermark.probe, "(text[], bigint[])", &values, mode).await;
            assert!(!probe.contains("Seq Scan") && !probe.contains("Rows Removed by Filter: "), "{probe}");
            assert!(pages(&probe) < 200, "{probe}");
            let from_zero = plan(&database, &statements.probe, "", "", mode).await;
            assert!(pages(&from_zero) > 1000, "{from_zero}");
        }
    }
    snapshot.rollback().await.unwrap();
    database.drop().await;
}
