//! The cost of the statements that must stay cheap, pinned by what the storage engine read for them.

use outbox_core::{ClaimRequest, MessageId, ProbeRequest, Settlement, Store, Tenants};
use outbox_sql::OutboxTable;

use crate::AnyStore;
use crate::mysql::{Database, Driver, STORE};
use crate::server::{StorePool, claim, message, tenant};

/// A store whose pool has one session, so that its counters are those of the store.
struct Counted {
    database: Database,
    store: AnyStore,
}

impl Counted {
    /// So much is published, so much is pending for one tenant and a little for seven others.
    async fn with(driver: Driver, published: u32, pending: u32) -> Self {
        let database = Database::create(driver).await;
        let table = database.make(&OutboxTable::default()).await;
        let digit =
            "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5
                      UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)";
        let numbers = format!(
            "(SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS n
              FROM {digit} AS a, {digit} AS b, {digit} AS c, {digit} AS d, {digit} AS e) AS number"
        );
        for (what, count, published) in [
            ("'big'", published, "utc_timestamp(6)"),
            ("'big'", pending, "NULL"),
            ("concat('t', n % 7)", 21, "NULL"),
        ] {
            let insert = format!(
                "INSERT INTO outbox_message (tenant_id, kind, subject_id, payload, published_at)
                 SELECT {what}, 'k', 's', repeat('x', 100), {published} FROM {numbers} WHERE n < {count}"
            );
            database.run(insert).await;
        }
        database.run("ANALYZE TABLE outbox_message").await;
        let store = driver.pool(database.options_of(STORE), 1).store(table.description());
        Self { database, store }
    }

    /// How many rows and entries the session has read by now.
    async fn reads(&self) -> u64 {
        let rows = StorePool::of(&self.store).pairs("SHOW SESSION STATUS LIKE 'Handler_read%'").await;
        // Those of temporary tables are told apart by their own words.
        let of_tables = [
            "Handler_read_key",
            "Handler_read_next",
            "Handler_read_first",
            "Handler_read_prev",
            "Handler_read_rnd_next",
        ];
        rows.iter()
            .filter(|(name, _)| of_tables.contains(&name.as_str()))
            .map(|(_, value)| value.parse::<u64>().unwrap())
            .sum()
    }

    /// What each operation reads: a claim of 50 with the settlement of 10, `pending` of 50, and both probes.
    async fn costs(&self) -> [(&'static str, u64); 4] {
        let mut marks = vec![self.reads().await];
        // Once before, so that no question about the table itself is counted.
        let request = ClaimRequest::new(tenant("big"), 50.try_into().unwrap());
        for _ in 0..2 {
            let outcome = self.store.claim(&request).await.unwrap();
            let outbox_core::ClaimOutcome::Claimed(claimed) = outcome else { panic!("{outcome:?}") };
            assert_eq!(claimed.messages.len(), 50);
            let published: Vec<MessageId> = claimed.messages[..10].iter().map(|message| message.id).collect();
            claimed.claim.settle(Settlement::published(published)).await.unwrap();
            marks.push(self.reads().await);
        }
        assert_eq!(self.store.pending(&tenant("big"), 50.try_into().unwrap()).await.unwrap().len(), 50);
        marks.push(self.reads().await);
        let named = Tenants::Named(["big", "t1", "nobody"].map(tenant).into());
        assert_eq!(self.store.probe(&ProbeRequest::new(named)).await.unwrap().oldest.len(), 2);
        marks.push(self.reads().await);
        assert_eq!(self.store.probe(&ProbeRequest::new(Tenants::Discovered)).await.unwrap().oldest.len(), 8);
        marks.push(self.reads().await);
        let cost = |place: usize| marks[place + 1] - marks[place];
        [("claim and settle", cost(1)), ("pending", cost(2)), ("named", cost(3)), ("discovered", cost(4))]
    }
}

/// A claim reads its batch, whatever is published or pending; a probe reads an entry for each tenant named, or a few
/// hundred for each tenant with a backlog.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn the_cost_grows_neither_with_what_is_published_nor_with_what_is_pending(driver: Driver) {
    let mut costs = Vec::new();
    for (published, pending) in [(0, 1_000), (40_000, 1_000), (1_000, 40_000), (0, 40_000)] {
        let counted = Counted::with(driver, published, pending).await;
        costs.push(counted.costs().await);
        counted.store.close().await;
        counted.database.drop().await;
    }
    for cost in &costs {
        for ((what, reads), most) in cost.iter().zip([600, 250, 40, 1_000]) {
            assert!(*reads <= most, "{what} reads {reads}, more than {most}: {costs:?}");
        }
    }
}

/// A claim that leaves subjects out walks the same index in the same order, past the rows of those subjects and of
/// nobody else, and stops at its limit: whatever the server thinks how many rows they have.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_of_other_subjects_walks_past_the_excluded_rows_and_no_further(driver: Driver) {
    let counted = Counted::with(driver, 1_000, 40_000).await;
    // 5,000 of the tenant's rows are one subject's, its oldest ones; then come others.
    let stuck = "INSERT INTO outbox_message (tenant_id, kind, subject_id)
                 SELECT 'late', 'k', if(number.n < 5000, 'stuck', concat('o', number.n % 2)) FROM
                     (SELECT row_number() OVER (ORDER BY id) AS n FROM outbox_message LIMIT 30000) AS number";
    counted.database.run(stuck).await;
    for state in ["SELECT 1", "ANALYZE TABLE outbox_message"] {
        counted.database.run(state).await;
        for (tenant_id, excluded, walked, found) in [
            ("late", &["stuck"][..], 5_000, 50),
            ("late", &["nobody", "else", "here"], 0, 50),
            ("big", &["x"], 0, 50),
            ("nobody", &["s"], 0, 0),
        ] {
            let mut request = ClaimRequest::new(tenant(tenant_id), 50.try_into().unwrap());
            request.excluded_subjects = excluded.iter().map(|subject| (*subject).to_owned()).collect();
            // Once before, so that no question about the table itself is counted.
            let mut reads = 0;
            for _ in 0..2 {
                let before = counted.reads().await;
                let outcome = counted.store.claim(&request).await.unwrap();
                let outbox_core::ClaimOutcome::Claimed(claimed) = outcome else { panic!("{outcome:?}") };
                assert_eq!(claimed.messages.len(), found);
                assert!(claimed.messages.iter().all(|message| !excluded.contains(&&*message.subject_id)));
                claimed.claim.settle(Settlement::release()).await.unwrap();
                reads = counted.reads().await - before;
            }
            assert!((walked..walked + 600).contains(&reads), "{state}: {tenant_id} {excluded:?}: {reads}");
        }
    }
    counted.database.drop().await;
}

/// The mark reads the rows that it marks and no other, in a table of a few rows too: a scan would wait for a row that
/// the application has not committed.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_mark_waits_for_no_uncommitted_row_of_a_small_table(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let row = message("acme", "1");
    let mut early = database.admin.begin().await.unwrap();
    table.append(&mut early, &row).await.unwrap();
    let written = database.append(&table, &[row.clone(), row.clone()]).await;
    let mut late = database.admin.begin().await.unwrap();
    table.append(&mut late, &row).await.unwrap();
    let store = database.store(table.description());
    for settling in [outbox_core::Settling::Mark, outbox_core::Settling::Delete] {
        database.run(format!("GRANT DELETE ON {}.outbox_message TO {STORE}@'%'", database.name)).await;
        let store = store.clone().with_settling(settling);
        let claimed = claim(&store, "acme").await;
        let first = claimed.messages[0].id;
        assert!(written.contains(&first.get()));
        claimed.claim.settle(Settlement::published([first])).await.unwrap();
    }
    early.commit().await.unwrap();
    late.commit().await.unwrap();
    assert_eq!(claim(&store, "acme").await.messages.len(), 2);
    database.drop().await;
}
