//! What SQLite does for each statement, pinned: the cost must not grow with the rows that are there.

use outbox_core::Settling;
use outbox_sql::sqlite::SqliteStatements;
use sqlx::{AssertSqlSafe, Row, SqliteConnection};

use crate::sqlite::Driver;
use crate::sqlite::database::FileDatabase;

async fn plan(connection: &mut SqliteConnection, statement: &str) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")))
        .fetch_all(connection)
        .await
        .expect("a plan");
    rows.iter().map(|row| row.get("detail")).collect()
}

/// Statistics as an ANALYZE leaves them in a quiet hour and in a backlog, and none at all.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn every_statement_searches_an_index_whatever_the_statistics_say(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let mut connection = database.connection().await;
    let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
                INSERT INTO outbox_message (tenant_id, kind, subject_id, published_at) \
                SELECT 't' || (i % 10), 'k', 's', CASE WHEN i < 19000 THEN 1 END FROM n";
    let backlog = "UPDATE outbox_message SET published_at = NULL WHERE id > 100";
    let statements = SqliteStatements::new(&database.table).expect("a valid table");
    for state in ["SELECT 1", fill, "ANALYZE", backlog, "ANALYZE"] {
        sqlx::raw_sql(AssertSqlSafe(state)).execute(&mut connection).await.expect("prepared");
        let index = "USING INDEX outbox_message_pending";
        for (name, statement, searches) in [
            ("pending", &statements.pending, 1),
            ("claim", &statements.claim, 1),
            ("claim_others", &statements.claim_others, 1),
            ("probe", &statements.probe, 3),
            ("probe_named", &statements.probe_named, 3),
        ] {
            let steps = plan(&mut connection, statement).await;
            let found = steps.iter().filter(|step| {
                step.starts_with("SEARCH")
                    && step.contains("outbox_message_pending (tenant_id>? AND tenant_id<?)")
            });
            assert!(found.count() >= searches, "{name} uses {index}: {steps:#?}");
            assert!(
                !steps.iter().any(|step| *step == "SCAN o" || step.starts_with("SCAN o ")),
                "{name} scans the table: {steps:#?}"
            );
        }
        let deleting = statements.clone().with_settling(&database.table, Settling::Delete);
        for mark in [&statements.mark, &deleting.mark] {
            let steps = plan(&mut connection, mark).await;
            assert!(steps[0].contains("USING INTEGER PRIMARY KEY"), "mark: {steps:#?}");
        }
        for sorted in [&statements.pending, &statements.probe] {
            let steps = plan(&mut connection, sorted).await;
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "sorts: {steps:#?}");
        }
    }
}
