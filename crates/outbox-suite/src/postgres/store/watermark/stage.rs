//! A table and a store whose watermarks rise at every chance.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{ClaimRequest, Claimed, MessageId, ProbeRequest, Settlement, Store, Tenants};
use outbox_sql::OutboxTable;
use outbox_sqlx::postgres::PostgresTable;
use outbox_testkit::ManualClock;
use sqlx::{Postgres, Transaction};

use crate::AnyStore;
use crate::postgres::{Database, Driver, ROLE, eager};
use crate::server::{ids, message, tenant};

pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A table with a store whose watermarks rise at every chance, and the clock that it looks from zero by.
pub(super) struct Stage {
    pub(super) database: Database,
    pub(super) table: PostgresTable,
    pub(super) store: AnyStore,
    pub(super) clock: ManualClock,
}

impl Stage {
    pub(super) async fn new(driver: Driver) -> Self {
        Self::on(Database::create(driver).await).await
    }

    pub(super) async fn on(database: Database) -> Self {
        let table = database.make(&OutboxTable::default()).await;
        database
            .run(format!(
                "GRANT DELETE ON outbox_message TO {ROLE}; GRANT SELECT ON SEQUENCE outbox_message_id_seq TO {ROLE}"
            ))
            .await;
        let clock = ManualClock::new();
        let watermark = eager().with_look_every(LOOK_EVERY).with_clock(Arc::new(clock.clone()));
        let store = database.store(table.description()).with_watermark(watermark);
        Self { database, table, store, clock }
    }

    /// Appends this many messages of `acme`.
    pub(super) async fn append(&self, count: usize) -> Vec<i64> {
        self.database.append(&self.table, &vec![message("acme", "{}"); count]).await
    }

    /// Draws an id in a transaction that stays open.
    pub(super) async fn begin(&self) -> (i64, Transaction<'static, Postgres>) {
        let mut transaction = self.database.admin.begin().await.unwrap();
        let id = self.table.append(&mut transaction, &message("acme", "{}")).await.unwrap();
        (id.get(), transaction)
    }

    /// Claims at most this many, and publishes them.
    pub(super) async fn publish(&self, limit: u32) -> Vec<i64> {
        let claimed = self.claim(limit).await;
        let published = ids(&claimed);
        settle(claimed, &published).await;
        published
    }

    pub(super) async fn claim(&self, limit: u32) -> Claimed {
        let request = ClaimRequest::new(tenant("acme"), limit.try_into().unwrap());
        crate::claim(&self.store, &request).await
    }

    /// What a claim would hand out, and gives back.
    pub(super) async fn look(&self) -> Vec<i64> {
        let claimed = self.claim(10).await;
        let handed_out = ids(&claimed);
        claimed.claim.settle(Settlement::release()).await.unwrap();
        handed_out
    }

    /// The lowest pending id, as a probe of every tenant and one of this tenant say.
    pub(super) async fn probe(&self) -> [Option<i64>; 2] {
        let mut answers = [None; 2];
        let named = Tenants::Named([tenant("acme"), tenant("nobody")].into());
        for (answer, tenants) in answers.iter_mut().zip([Tenants::Discovered, named]) {
            let found = self.store.probe(&ProbeRequest::new(tenants)).await.unwrap().oldest;
            assert!(found.len() <= 1, "{found:?}");
            *answer = found.first().map(|oldest| oldest.id.get());
        }
        answers
    }

    /// Inserts a row of `acme` whose id is drawn by hand.
    pub(super) async fn insert_by_hand(&self, id: i64) {
        let insert = "INSERT INTO outbox_message (id, tenant_id, kind, subject_id) VALUES";
        self.database.run(format!("{insert} ({id}, 'acme', 'k', 's')")).await;
    }

    pub(super) async fn end(self) {
        self.store.close().await;
        self.database.drop().await;
    }
}

pub(super) async fn settle(claimed: Claimed, published: &[i64]) {
    let published = published.iter().copied().map(MessageId::new);
    claimed.claim.settle(Settlement::published(published)).await.unwrap();
}

/// An id that was never used, below what comes next: its transaction rolled back.
pub(super) async fn gap(stage: &Stage) -> i64 {
    let (id, transaction) = stage.begin().await;
    transaction.rollback().await.unwrap();
    id
}
