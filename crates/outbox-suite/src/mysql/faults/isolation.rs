//! Servers whose default isolation is another than a claim needs: the default of the default, and a stricter one.

use std::time::Duration;

use outbox_core::MessageId;
use outbox_testkit::Recorder;

use servers::MariaDb;

use crate::mysql::{Driver, Stage};
use crate::server::{Entry, Replica, message, quick, recorded, started, tenant};

const ROWS: usize = 20_000;
const TENANTS: usize = 4;

/// Four replicas race for four tenants with 20,000 rows, most of them written meanwhile: each claim reads what the
/// one before it marked, so that nothing is published twice, overtaken or lost.
async fn race_under(driver: Driver, isolation: &str) {
    let server = MariaDb::start(&[("transaction_isolation", isolation)]).unwrap();
    let stage = Stage::on(driver, &server, "race").await;
    assert_eq!(stage.database.text("SELECT @@GLOBAL.tx_isolation").await, isolation);
    let all = Recorder::new();
    let recorders = [(); 4].map(|()| recorded(&all));
    let replicas = recorders.each_ref().map(|recorder| {
        let config = quick().poll_interval(Duration::from_millis(1)).initial_batch(50).max_batch(50);
        Replica::start(&stage.store(6), recorder.clone(), config)
    });
    let mut written = vec![Vec::new(); TENANTS];
    for _ in 0..ROWS / TENANTS / 500 {
        for (nth, written) in written.iter_mut().enumerate() {
            let messages = vec![message(&format!("T{nth}"), "{}"); 500];
            let ids = stage.database.append(&stage.table, &messages).await;
            written.extend(ids.into_iter().map(MessageId::new));
        }
    }
    let published = async {
        all.wait_for_accepted(ROWS).await;
        stage.wait_until_published().await;
    };
    tokio::time::timeout(Duration::from_mins(2), published).await.expect("everything is published");
    for (nth, written) in written.iter().enumerate() {
        assert_eq!(all.accepted(&tenant(&format!("T{nth}"))), *written);
    }
    all.assert_in_order();
    all.assert_no_duplicates();
    for (replica, recorder) in replicas.into_iter().zip(&recorders) {
        assert_eq!(replica.journal.count(|entry| matches!(entry, Entry::Failed(..))), 0);
        assert!(!started(recorder).is_empty(), "one of the replicas had no turn");
        replica.stop().await;
    }
    stage.end().await;
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn four_replicas_repeat_nothing_where_the_default_isolation_is_repeatable_read(
    driver: Driver,
) {
    race_under(driver, "REPEATABLE-READ").await;
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn four_replicas_repeat_nothing_where_the_default_isolation_is_serializable(driver: Driver) {
    race_under(driver, "SERIALIZABLE").await;
}
