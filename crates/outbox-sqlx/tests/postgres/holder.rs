//! Who holds a tenant, as the page for operators asks it.

use outbox_sqlx::OutboxTable;
use outbox_suite::postgres::{Database, STORE};
use outbox_suite::server::claim;
use sqlx::{AssertSqlSafe, Row as _};

use super::driver::driver;

const PAGE: &str = include_str!("../../../../docs/operate.md");

/// The page's query finds the session that holds a tenant, and nothing once it is free.
#[tokio::test]
async fn the_page_s_query_tells_who_holds_a_tenant() {
    let (_, section) = PAGE.split_once("## Who holds a tenant").expect("the section");
    let (_, query) = section.split_once("```sql\n").expect("a query");
    let (query, _) = query.split_once("```").expect("its end");
    let database = Database::create(driver()).await;
    let table = database.make(&OutboxTable::default()).await;
    let held = claim(&database.store(table.description()), "acme").await;
    let rows = sqlx::raw_sql(AssertSqlSafe(query.to_owned())).fetch_all(&database.admin).await.unwrap();
    let found: Vec<String> = rows.iter().map(|row| row.get("application_name")).collect();
    assert_eq!(found, [STORE]);
    drop(held);
    database.wait_until_nothing_is_left(STORE).await;
    assert!(
        sqlx::raw_sql(AssertSqlSafe(query.to_owned())).fetch_all(&database.admin).await.unwrap().is_empty()
    );
    database.drop().await;
}
