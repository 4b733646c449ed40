//! Which row a mark is for: the id's, and of the same time.

use outbox_core::{NewMessage, Settlement, Settling, StoreErrorKind, Timestamp};

use crate::chain;
use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, claim, execute, ids, tenant};

/// Promise: a row is marked only after it was published, whoever gave its id to another message meanwhile.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_row_that_took_the_id_of_a_published_one_stays_pending(driver: Driver) {
    for settling in [Settling::Mark, Settling::Delete] {
        let database = FileDatabase::new(driver).await;
        let acme = tenant("acme");
        let written = database.commit(&acme, 2).await;
        let claimed = claim(&database.store().with_settling(settling), &acme).await;
        let restore = "DELETE FROM outbox_message WHERE id = 2; \
                       INSERT INTO outbox_message (id, tenant_id, kind, subject_id, occurred_at) \
                       VALUES (2, 'acme', 'order.cancelled', 'order-7', 7)";
        execute(&database, restore).await;
        let error = claimed.claim.settle(Settlement::published(written)).await.expect_err("row 2 is another");
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert!(chain(&error).contains("1 of 2 published messages were marked"), "{}", chain(&error));
        let left = database.pending().await;
        assert_eq!(left.iter().map(|id| id.get()).collect::<Vec<_>>(), [2], "{settling:?}");
    }
}

/// Every time that a row can hold goes through the mark's parameter as it is.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn rows_of_every_time_are_marked(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let times = [i64::MIN, i64::MIN + 1, -1, 0, 1, 1 << 53, (1 << 53) + 1, i64::MAX - 1, i64::MAX];
    let messages: Vec<_> = times
        .iter()
        .map(|time| {
            NewMessage::new(acme.clone(), "k", "s", "p").with_occurred_at(Timestamp::from_micros(*time))
        })
        .collect();
    let written = database.application().await.append_all(&database.table, &messages).await;
    let written = written.expect("appended");
    let claimed = claim(&database.store(), &acme).await;
    assert_eq!(ids(&claimed), written);
    claimed.claim.settle(Settlement::published(written)).await.expect("all are marked");
    assert_eq!(database.pending().await, []);
}
