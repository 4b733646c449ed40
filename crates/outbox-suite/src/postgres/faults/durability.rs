//! A server that crashes under relaxed marks.

use outbox_core::Settling;
use outbox_sql::postgres::Durability;
use outbox_testkit::Recorder;
use rustix::process::{Pid, Signal, kill_process};
use servers::Postgres;

use crate::postgres::{Driver, Stage};
use crate::server::{Replica, quick, soon, tenant};

/// The crash takes marks back that were answered: what they told of is published again, in order, and nothing is
/// lost. A durable mark is not taken back.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_crash_of_the_server_takes_relaxed_marks_back_and_loses_nothing(driver: Driver) {
    for settling in [Settling::Mark, Settling::Delete] {
        let server = Postgres::start(&[]).unwrap();
        let stage = Stage::on(driver, &server, "crash").await;
        stage.database.run("GRANT DELETE ON outbox_message TO PUBLIC").await;
        let durable = stage.append("acme", 3).await;
        let recorder = Recorder::new();
        let store = stage.store(3).with_settling(settling);
        let replica = Replica::start(&store, recorder.clone(), quick().initial_batch(2));
        stage.wait_until_published().await;
        replica.stop().await;
        let relaxed = stage.append("acme", 6).await;

        // Who flushes what did not wait for it. Stopped, so that the crash comes first; and killed, which is the crash:
        // the server then ends every session and starts anew from what is on the disk.
        let flusher = "SELECT pid::bigint FROM pg_stat_activity WHERE backend_type = 'walwriter'";
        let flusher = i32::try_from(stage.database.number(flusher).await).unwrap();
        let flusher = Pid::from_raw(flusher).unwrap();
        kill_process(flusher, Signal::STOP).unwrap();
        let store = store.with_durability(Durability::Relaxed);
        let replica = Replica::start(&store, recorder.clone(), quick().initial_batch(2));
        stage.wait_until_published().await;
        kill_process(flusher, Signal::KILL).unwrap();

        soon("some are published again", recorder.wait_for_accepted(durable.len() + relaxed.len() + 1)).await;
        stage.wait_until_published().await;
        let accepted = recorder.accepted(&tenant("acme"));
        let (once, again) = accepted.split_at(durable.len() + relaxed.len());
        assert_eq!(once, [durable, relaxed.clone()].concat());
        assert!(relaxed.ends_with(again), "{settling:?}: {again:?} of {relaxed:?}");
        replica.stop().await;
        stage.end().await;
    }
}
