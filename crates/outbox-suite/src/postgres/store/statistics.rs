//! What a store leaves in the server's statistics of statements.

use outbox_core::{ClaimOutcome, ClaimRequest, ProbeRequest, Settlement, Store, Tenants};
use outbox_sql::OutboxTable;
use servers::Postgres;

use crate::AnyStore;
use crate::postgres::{Database, Driver, ROLE, eager};
use crate::server::tenant;

/// Each claim was an entry of its own, which pushes the application's out: the server keeps a few thousand.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_thousand_claims_are_no_more_entries_of_pg_stat_statements_than_ten(driver: Driver) {
    let server = Postgres::start(&[("shared_preload_libraries", "pg_stat_statements")]).unwrap();
    let database = Database::on(driver, &server, "statistics").await;
    database.run("CREATE EXTENSION pg_stat_statements").await;
    let table = database.make(&OutboxTable::default()).await;
    database.run(format!("GRANT SELECT ON SEQUENCE outbox_message_id_seq TO {ROLE}")).await;
    for (index, variant) in driver.variants().into_iter().enumerate() {
        for watermark in if index == 0 { &[false, true][..] } else { &[false] } {
            let rows = "TRUNCATE outbox_message;
                INSERT INTO outbox_message (tenant_id, kind, subject_id)
                SELECT 'tenant ' || n % 344, 'kind', 'subject ' || n FROM generate_series(0, 1031) AS n";
            database.run(rows).await;
            let pool = database.store_pool(2);
            let store = variant.clone().into_iter().fold(pool.store(table.description()), AnyStore::with);
            let store = if *watermark { store.with_watermark(eager()) } else { store };
            for n in 0..10 {
                goes_its_ways(&store, n).await;
            }
            let few = entries(&database).await;
            for n in 10..344 {
                goes_its_ways(&store, n).await;
            }
            // Three claims each.
            let many = entries(&database).await;
            assert!(!few.is_empty(), "nothing is counted");
            let new: Vec<_> = many.iter().filter(|entry| !few.contains(entry)).collect();
            assert!(new.is_empty(), "{} new entries, {:#?}", new.len(), &new[..new.len().min(5)]);
            pool.close().await;
        }
    }
    database.admin.close().await;
}

/// One tenant's claims, one of each sort, and what comes beside them.
async fn goes_its_ways(store: &AnyStore, n: u32) {
    let tenant = tenant(&format!("tenant {n}"));
    let request = ClaimRequest::new(tenant.clone(), (n % 7 + 1).try_into().unwrap());
    let mut claimed = crate::claim(store, &request).await;
    claimed.claim.verify().await.unwrap();
    assert!(matches!(store.claim(&request).await.unwrap(), ClaimOutcome::Held));
    let published: Vec<_> = claimed.messages.iter().map(|message| message.id).collect();
    assert!(!published.is_empty());
    claimed.claim.settle(Settlement::published(published)).await.unwrap();
    let subjects: Vec<_> = (0..=n % 3).map(|subject| format!("subject {subject}")).collect();
    let claimed = crate::claim(store, &request.clone().with_excluded_subjects(subjects)).await;
    claimed.claim.settle(Settlement::release()).await.unwrap();
    store.pending(&tenant, (n + 1).try_into().unwrap()).await.unwrap();
    if n.is_multiple_of(10) {
        store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap();
        store.probe(&ProbeRequest::new(Tenants::Named([tenant].into()))).await.unwrap();
    }
}

/// The entries of the stores' role.
async fn entries(database: &Database) -> Vec<String> {
    let entries = "SELECT query FROM pg_stat_statements WHERE userid = $1::regrole ORDER BY queryid";
    sqlx::query_scalar(entries).bind(ROLE).fetch_all(&database.admin).await.unwrap()
}
