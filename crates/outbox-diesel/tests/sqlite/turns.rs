//! One table, every replica: a relay on sqlx and relays on Diesel take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbox_core::{Accepted, Delivery, PublishError, Publisher, Relay, RelayConfig, Store, async_trait};
use outbox_diesel::sqlite::SqliteStore;
use outbox_suite::sqlite::{FileDatabase, tenant};
use outbox_testkit::Recorder;

use crate::driver::driver;
use crate::pool;

const TENANTS: [&str; 2] = ["acme", "globex"];

/// A relay's publisher: into the record that all share, and counted on its own.
struct Counted {
    recorder: Recorder,
    count: Arc<AtomicUsize>,
}

#[async_trait]
impl Publisher for Counted {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        // Long enough for another to come in between, if anybody could.
        tokio::task::yield_now().await;
        let accepted = self.recorder.publish(delivery).await;
        self.count.fetch_add(1, Ordering::Relaxed);
        accepted
    }
}

/// Promise: whatever their ORM, relays over one file never publish a tenant at once, and together publish each
/// message once and in order. Goes on until each had its turn several times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_on_sqlx_and_on_diesel_take_turns_on_one_file_and_never_overlap() {
    let database = FileDatabase::new(driver()).await;
    let pool = sqlx::sqlite::SqlitePoolOptions::new().connect_lazy_with(database.options());
    let open = database.open().busy(Duration::from_secs(5));
    let stores: [Arc<dyn Store>; 3] = [
        Arc::new(outbox_sqlx::sqlite::SqliteStore::new(pool, database.table.clone()).expect("a table")),
        Arc::new(database.store_as(&open)),
        Arc::new(SqliteStore::new(pool::bb8(&open), database.table.clone()).expect("a table")),
    ];
    let recorder = Recorder::new();
    let counts = stores.each_ref().map(|_| Arc::new(AtomicUsize::new(0)));
    let mut handles = Vec::new();
    for (store, count) in stores.into_iter().zip(&counts) {
        let publisher = Counted { recorder: recorder.clone(), count: Arc::clone(count) };
        let config = RelayConfig::builder().tenants(TENANTS).poll_interval(Duration::from_millis(3)).build();
        let relay = Relay::builder(store, publisher, config.expect("a configuration"));
        handles.push(relay.build().expect("a relay").start().expect("started"));
    }
    let mut written = 0;
    while counts.iter().any(|count| count.load(Ordering::Relaxed) < 20) {
        for name in TENANTS {
            written += database.commit(&tenant(name), 10).await.len();
        }
        let published = tokio::time::timeout(Duration::from_secs(50), recorder.wait_for_accepted(written));
        published.await.expect("everything is published");
        assert!(written < 20_000, "one of them never had a turn: {counts:?}");
    }
    for handle in handles {
        handle.stop().await.expect("stopped");
    }
    recorder.assert_in_order();
    recorder.assert_no_duplicates();
    assert_eq!(database.marked().await, i64::try_from(written).expect("few"));
}
