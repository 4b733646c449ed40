//! The plans of the statements that must stay cheap, pinned by `EXPLAIN`, after an `ANALYZE` in a backlog.

use std::time::Duration;

use outbox_core::Settling;
use outbox_sql::postgres::{BEGIN_CLAIM, Durability, PostgresStatements, ServerTraits, claim_settings};
use outbox_sqlx::OutboxTable;
use outbox_suite::postgres::Database;
use sqlx::{AssertSqlSafe, PgConnection};

use super::driver::driver;

/// Much is published, much is pending for one tenant and a little for a few, and the planner knows it.
pub(crate) async fn backlog() -> Database {
    let database = Database::create(driver()).await;
    database.make(&OutboxTable::default()).await;
    let rows = "INSERT INTO outbox_message (tenant_id, kind, subject_id, published_at)
                SELECT CASE WHEN n % 1000 = 0 THEN 't' || n % 7 ELSE 'big' END, 'k', 's',
                       CASE WHEN n <= 60000 THEN now() END
                FROM generate_series(1, 100000) AS n";
    database.run(rows).await;
    database.run("VACUUM (ANALYZE) outbox_message").await;
    database
}

/// The plan of a statement with these parameters, as text; measured, so that rows that were thrown away show.
pub(crate) async fn plan(
    database: &Database,
    statement: &str,
    types: &str,
    values: &str,
    mode: &str,
) -> String {
    plan_after(database, "SELECT 1", statement, types, values, mode).await
}

/// The plan of a statement of a claim, after what a claim sets.
async fn claim_plan(database: &Database, statement: &str, types: &str, values: &str, mode: &str) -> String {
    let traits = ServerTraits { version: 150_000, linux: true };
    let settings = claim_settings(traits, Duration::from_secs(30), Durability::Durable);
    let begin = format!("{BEGIN_CLAIM}; {settings}");
    plan_after(database, &begin, statement, types, values, mode).await
}

async fn plan_after(
    database: &Database,
    begin: &str,
    statement: &str,
    types: &str,
    values: &str,
    mode: &str,
) -> String {
    let mut connection = database.admin.acquire().await.unwrap();
    let run = async |connection: &mut PgConnection, sql: String| {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
    };
    run(&mut connection, format!("DEALLOCATE ALL; SET plan_cache_mode = {mode}")).await;
    run(&mut connection, begin.to_owned()).await;
    run(&mut connection, format!("PREPARE pinned {types} AS {statement}")).await;
    let explain =
        format!("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE pinned {values}");
    let lines: Vec<(String,)> = {
        use sqlx::Row;
        let rows = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(&mut *connection).await.unwrap();
        rows.iter().map(|row| (row.get(0),)).collect()
    };
    connection.detach();
    // PostgreSQL 18 tells rows with their hundredths.
    lines.into_iter().map(|(line,)| line.replace(".00 loops", " loops")).collect::<Vec<_>>().join("\n")
}

const PENDING_INDEX: &str = "using outbox_message_tenant_id_id_idx";

const REMOVED: &str = "Rows Removed by Filter: ";

/// How many rows scans read in vain. A claim looks for the row at which it has enough bytes: the others that this look
/// passes are the batch itself.
fn removed(plan: &str) -> Vec<&str> {
    let lines: Vec<&str> = plan.lines().map(str::trim).collect();
    let pairs = lines.windows(2).filter(|pair| !pair[0].contains(".bytes IS NULL) OR"));
    pairs.filter_map(|pair| pair[1].strip_prefix(REMOVED)).collect()
}

pub(crate) fn assert_cheap(plan: &str) {
    assert_eq!(removed(plan), [""; 0], "{plan}");
    assert_in_order(plan);
}

fn assert_in_order(plan: &str) {
    assert!(plan.contains(PENDING_INDEX), "{plan}");
    for dear in ["Seq Scan", "outbox_message_pkey", "Sort"] {
        assert!(!plan.contains(dear), "{dear}:\n{plan}");
    }
}

/// A claim reads its batch from the index of what is pending, in its order: no published row, no sort.
#[tokio::test]
async fn a_claim_reads_the_index_of_what_is_pending_and_nothing_else() {
    let database = backlog().await;
    let statements = PostgresStatements::new(&OutboxTable::default()).unwrap();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        for tenant in ["big", "t1", "nobody"] {
            let values = format!("('{tenant}', 32, 1000000)");
            let claim =
                claim_plan(&database, &statements.claim, "(text, bigint, bigint)", &values, mode).await;
            assert_cheap(&claim);
            let values = format!("('{tenant}', 32)");
            assert_cheap(&plan(&database, &statements.pending, "(text, bigint)", &values, mode).await);
        }
    }
    database.drop().await;
}

/// A claim that leaves subjects out walks the same index in the same order, past the rows of those subjects and
/// of nobody else, and stops at its limit: whatever the planner thinks how many rows they have.
#[tokio::test]
async fn a_claim_of_other_subjects_walks_past_the_excluded_rows_and_no_further() {
    let database = backlog().await;
    // 20,000 of the tenant's rows are one subject's, its oldest ones; then come two of others.
    let stuck = "INSERT INTO outbox_message (tenant_id, kind, subject_id)
                 SELECT 'late', 'k', CASE WHEN n > 20000 THEN 'o' || n % 2 ELSE 'stuck' END
                 FROM generate_series(1, 30000) AS n";
    let statements = PostgresStatements::new(&OutboxTable::default()).unwrap();
    for state in ["SELECT 1", stuck, "VACUUM (ANALYZE) outbox_message"] {
        database.run(state).await;
        for mode in ["force_custom_plan", "force_generic_plan"] {
            for (tenant, excluded, walked) in [
                ("late", "{stuck}", if state == "SELECT 1" { 0 } else { 20_000 }),
                ("late", "{nobody,else}", 0),
                ("big", "{x}", 0),
                ("nobody", "{s}", 0),
            ] {
                let values = format!("('{tenant}', 32, 1000000, '{excluded}')");
                let types = "(text, bigint, bigint, text[])";
                let claim = claim_plan(&database, &statements.claim_others, types, &values, mode).await;
                let removed = removed(&claim);
                assert_eq!(removed.is_empty(), walked == 0, "{claim}");
                assert!(removed.iter().all(|rows| *rows == walked.to_string()), "{claim}");
                assert_in_order(&claim);
            }
        }
    }
    database.drop().await;
}

/// With statistics from when less was pending than the claim may hand out, it reads no more than its batch all the
/// same: sorting the little that there is looks cheap then, and reads the whole backlog.
#[tokio::test]
async fn a_claim_of_more_than_was_pending_reads_its_batch_and_no_more() {
    let database = Database::create(driver()).await;
    database.make(&OutboxTable::default()).await;
    database.run("ALTER TABLE outbox_message SET (autovacuum_enabled = off)").await;
    let insert = "INSERT INTO outbox_message (tenant_id, kind, subject_id, published_at)";
    let little = "SELECT 't' || n % 10, 'k', 's', CASE WHEN n <= 99500 THEN now() END FROM generate_series(1, 100000) AS n";
    database.run(format!("{insert} {little}")).await;
    database.run("VACUUM (ANALYZE) outbox_message").await;
    database.run(format!("{insert} SELECT 't3', 'k', 's', NULL FROM generate_series(1, 30000)")).await;
    let statements = PostgresStatements::new(&OutboxTable::default()).unwrap();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        for (claim, types, values) in [
            (&statements.claim, "(text, bigint, bigint)", "('t3', 1000, 16777216)"),
            (&statements.pending, "(text, bigint)", "('t3', 1000)"),
            (&statements.watermark.claim, "(text, bigint, bigint, bigint)", "('t3', 1000, 16777216, 99503)"),
        ] {
            assert_cheap(&plan(&database, claim, types, values, mode).await);
        }
    }
    database.drop().await;
}

/// The probe takes one entry of the index per tenant that has something, however much is pending.
#[tokio::test]
async fn the_probe_is_a_loose_scan_of_the_index() {
    let database = backlog().await;
    let statements = PostgresStatements::new(&OutboxTable::default()).unwrap();
    let probe = plan(&database, &statements.probe, "", "", "auto").await;
    assert_cheap(&probe);
    assert!(probe.contains("Recursive Union (actual rows=8 loops=1)"), "{probe}");
    assert!(probe.matches(PENDING_INDEX).count() == 2, "{probe}");
    assert!(!probe.contains("rows=40"), "{probe}");
    for mode in ["force_custom_plan", "force_generic_plan"] {
        let named = "('{t1,big,t1,nobody}')";
        let probe = plan(&database, &statements.probe_named, "(text[])", named, mode).await;
        assert!(probe.matches(PENDING_INDEX).count() == 1, "{probe}");
        assert!(probe.contains(" loops=3)"), "one entry for each name: {probe}");
        assert!(!probe.contains("Rows Removed"), "{probe}");
    }
    database.drop().await;
}

/// A mark goes to its rows by the primary key, whether the planner knows of the backlog or has its statistics from
/// before: the index of what is pending looks empty then, and reading all of it cheap.
#[tokio::test]
async fn a_mark_goes_by_the_primary_key_with_statistics_from_before_the_backlog() {
    let database = Database::create(driver()).await;
    database.make(&OutboxTable::default()).await;
    let insert = "INSERT INTO outbox_message (tenant_id, kind, subject_id, published_at)";
    database.run(format!("{insert} SELECT 'big', 'k', 's', now() FROM generate_series(1, 20000)")).await;
    database.run("VACUUM (ANALYZE) outbox_message").await;
    database.run(format!("{insert} SELECT 'big', 'k', 's', NULL FROM generate_series(1, 20000)")).await;
    let table = OutboxTable::default();
    let marking = PostgresStatements::new(&table).unwrap();
    let deleting = marking.clone().with_settling(&table, Settling::Delete);
    let mut first = 20_001;
    for state in ["SELECT 1", "VACUUM (ANALYZE) outbox_message"] {
        database.run(state).await;
        for mark in [&marking.mark, &deleting.mark] {
            for mode in ["force_custom_plan", "force_generic_plan"] {
                let ids: Vec<String> = (first..first + 32).map(|id| id.to_string()).collect();
                first += 32;
                let values = format!("('{{{}}}')", ids.join(","));
                let plan = claim_plan(&database, mark, "(bigint[])", &values, mode).await;
                assert!(plan.contains("Index Scan using outbox_message_pkey"), "{plan}");
                assert!(!plan.contains(PENDING_INDEX) && !plan.contains("Rows Removed"), "{plan}");
                assert!(plan.contains("(actual rows=32 loops=1)"), "{plan}");
            }
        }
    }
    database.drop().await;
}
