//! Wake-ups from other processes. The relays here have a clock that stands still, so that they never poll: what is
//! published was found because somebody woke the relay.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_core::{HealthReport, NewMessage};
use outbox_sql::postgres::wake;
use outbox_sqlx::postgres::{PostgresListener, PostgresListening, PostgresNotifier};
use outbox_sqlx::{OutboxTable, PayloadType};
use outbox_suite::postgres::{Database, Stage};
use outbox_suite::server::{Entry, Replica, ServerDatabase as _, message, quick, soon, tenant};
use outbox_testkit::{ManualClock, Recorder};
use servers::Proxy;
use sqlx::postgres::{PgListener, PgSslMode};
use sqlx::{AssertSqlSafe, PgPool};

use super::driver::driver;

const LISTENER: &str = "outbox_listener";

/// A relay that has probed once, and never polls again: nothing is found any more, unless it is woken.
async fn idle(stage: &Stage, recorder: &Recorder) -> Replica {
    let clock = Arc::new(ManualClock::new());
    let replica = Replica::start_with(&stage.store(3), recorder.clone(), quick(), |relay| relay.clock(clock));
    replica.journal.wait_for(1, |entry| *entry == Entry::Probed).await;
    replica
}

fn listener(stage: &Stage) -> PostgresListener {
    let options = stage.options().application_name(LISTENER);
    PostgresListener::new(options, stage.table.description()).unwrap()
}

/// Starts to listen, and waits until the relay was woken because of that.
async fn listening(listener: PostgresListener, replica: &Replica) -> PostgresListening {
    let probed = replica.journal.count(|entry| *entry == Entry::Probed);
    let listening = listener.start(replica.relay.waker()).unwrap();
    replica.journal.wait_for(probed + 1, |entry| *entry == Entry::Probed).await;
    listening
}

/// What a session hears on the table's channel.
async fn ear(stage: &Stage) -> PgListener {
    let mut ear = PgListener::connect_with(&stage.database.admin).await.unwrap();
    ear.listen(&wake::channel(stage.table.description())).await.unwrap();
    ear
}

/// The payloads that were heard before `end`, which is sent now.
async fn heard(stage: &Stage, ear: &mut PgListener) -> Vec<String> {
    let end = format!("{}, 'end'", wake::notify(stage.table.description()));
    stage.database.run(end).await;
    let mut heard = Vec::new();
    loop {
        let hint = soon("a notification", ear.recv()).await.unwrap();
        if hint.payload() == "end" {
            return heard;
        }
        heard.push(hint.payload().to_owned());
    }
}

async fn sessions(stage: &Stage, count: usize) {
    let sessions = format!(
        "SELECT count(*) = {count} FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = '{LISTENER}'"
    );
    stage.database.wait_until(&sessions).await;
}

/// A notifier beside the writer's transactions wakes the relay; it is called after the commit.
#[tokio::test]
async fn a_notifier_wakes_the_relay() {
    let stage = Stage::new(driver()).await;
    let recorder = Recorder::new();
    let replica = idle(&stage, &recorder).await;
    let listening = listening(listener(&stage), &replica).await;
    let notifier = PostgresNotifier::start(stage.database.admin.clone(), &stage.table).unwrap();
    for round in 1..=3 {
        stage.append("acme", 1).await;
        notifier.notify();
        soon("it is published", recorder.wait_for_accepted(round)).await;
    }
    listening.stop().await;
    sessions(&stage, 0).await;
    replica.stop().await;
    stage.end().await;
}

/// Any number of calls is one hint for each interval, with nothing in it; a lost connection is replaced, and a pool
/// that is closed harms nobody.
#[tokio::test]
async fn a_notifier_gathers_its_hints_and_heals() {
    let stage = Stage::new(driver()).await;
    let mut ear = ear(&stage).await;
    let pool = stage.database.pool("notifier", 1);
    let start = |pool: &PgPool, interval| {
        PostgresNotifier::start_with_interval(pool.clone(), &stage.table, interval).unwrap()
    };
    let notifier = start(&pool, Duration::from_hours(1));
    for _ in 0..1_000 {
        notifier.notify();
    }
    assert_eq!(soon("the first hint", ear.recv()).await.unwrap().payload(), "");
    for _ in 0..1_000 {
        notifier.notify();
    }
    assert_eq!(heard(&stage, &mut ear).await, [""; 0]);

    let notifier = start(&pool, Duration::from_millis(1));
    for _ in 0..3 {
        let kill = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = 'notifier'";
        assert_eq!(stage.database.number(kill).await, 1);
        notifier.notify();
        assert_eq!(soon("a hint", ear.recv()).await.unwrap().payload(), "");
    }
    pool.close().await;
    notifier.notify();
    drop((notifier, ear));
    stage.end().await;
}

/// The trigger gives the hint at the commit and not before, once for a transaction however much it appends, and none
/// for one that rolls back. Rows of 10 MB and long tenants do not matter, nor do names that need quotes. Dropped, it
/// leaves nothing.
#[tokio::test]
async fn the_trigger_hints_at_the_commit_and_at_nothing_else() {
    for table in [OutboxTable::default(), OutboxTable::new("sel\"ect Å").with_payload_type(PayloadType::Text)]
    {
        let stage = Stage::with(driver(), &table).await;
        stage.database.run(stage.table.notify_trigger_ddl()).await;
        let mut ear = ear(&stage).await;
        let writers = stage.database.pool("writer", 2);

        let mut rolled_back = writers.begin().await.unwrap();
        stage.table.append(&mut rolled_back, &message("acme", "{}")).await.unwrap();
        rolled_back.rollback().await.unwrap();
        assert_eq!(heard(&stage, &mut ear).await, [""; 0]);

        let mut transaction = writers.begin().await.unwrap();
        let large = NewMessage::new(tenant(&"ä".repeat(1_300)), "k", "s", vec![b'x'; 10_000_000]);
        stage.table.append(&mut transaction, &large).await.unwrap();
        stage.table.append_all(&mut transaction, &vec![message("acme", "{}"); 100]).await.unwrap();
        assert_eq!(heard(&stage, &mut ear).await, [""; 0]);
        transaction.commit().await.unwrap();
        assert_eq!(heard(&stage, &mut ear).await, [""]);

        stage.database.run(stage.table.drop_notify_trigger_ddl()).await;
        stage.append("acme", 1).await;
        assert_eq!(heard(&stage, &mut ear).await, [""; 0]);
        let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'outbox%'";
        assert_eq!(stage.database.number(left).await, 0);
        drop(ear);
        writers.close().await;
        stage.end().await;
    }
}

/// With the trigger, whoever writes wakes the relay, in plain SQL too.
#[tokio::test]
async fn the_trigger_wakes_the_relay() {
    let stage = Stage::new(driver()).await;
    stage.database.run(stage.table.notify_trigger_ddl()).await;
    let recorder = Recorder::new();
    let replica = idle(&stage, &recorder).await;
    let listening = listening(listener(&stage), &replica).await;
    let insert = "INSERT INTO outbox_message (tenant_id, kind, subject_id) VALUES ('acme', 'k', 's')";
    for round in 1..=3 {
        stage.database.run(insert).await;
        soon("it is published", recorder.wait_for_accepted(round)).await;
    }
    drop(listening);
    sessions(&stage, 0).await;
    replica.stop().await;
    stage.end().await;
}

/// The listener's session is terminated: it listens again and wakes the relay then, so that what was committed
/// meanwhile, without a hint that anybody could hear, is found.
#[tokio::test]
async fn a_terminated_listener_listens_again_and_looks_for_what_it_missed() {
    let stage = Stage::new(driver()).await;
    let recorder = Recorder::new();
    let replica = idle(&stage, &recorder).await;
    let listening = listening(listener(&stage), &replica).await;
    let kill = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = '{LISTENER}'"
    );
    for round in 1..=3 {
        stage.append("acme", 1).await;
        sessions(&stage, 1).await;
        assert_eq!(stage.database.number(kill.as_str()).await, 1);
        soon("it is published", recorder.wait_for_accepted(round)).await;
    }
    sessions(&stage, 1).await;
    assert!(!listening.is_ended());
    replica.health(HealthReport::is_healthy).await;
    listening.stop().await;
    sessions(&stage, 0).await;
    replica.stop().await;
    stage.end().await;
}

/// How many sockets of this process lead to a port.
fn sockets_to(port: u16) -> usize {
    let port = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let fields = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Established, on this side of it.
    fields.filter(|fields| fields[2].ends_with(&port) && fields[3] == "01").count()
}

/// The listener's packets are dropped, in silence: its heartbeat notices, it listens again on another connection and
/// wakes the relay then. The silent sockets are closed at once, although nobody answers there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_listener_is_noticed_and_replaced_and_leaks_no_socket() {
    let server = Database::tcp_server();
    let stage = Stage::on(driver(), server, "half_open_listener").await;
    let proxy = Arc::new(Proxy::start(server.address()).unwrap());
    let recorder = Recorder::new();
    let replica = idle(&stage, &recorder).await;
    let options = stage.options().host("127.0.0.1").port(proxy.port()).ssl_mode(PgSslMode::Disable);
    let listener = PostgresListener::new(options, stage.table.description()).unwrap();
    let listening = listening(listener.with_heartbeat(Duration::from_millis(100)), &replica).await;
    for round in 1..=3 {
        proxy.freeze_open_connections();
        stage.append("acme", 1).await;
        soon("it is published", recorder.wait_for_accepted(round)).await;
        assert_eq!(sockets_to(proxy.port()), 1, "round {round}");
    }
    // And it hears again.
    let notifier = PostgresNotifier::start(stage.database.admin.clone(), &stage.table).unwrap();
    stage.append("acme", 1).await;
    notifier.notify();
    soon("it is published", recorder.wait_for_accepted(4)).await;
    // Dropped while nobody answers, it closes its socket all the same.
    proxy.freeze();
    listening.stop().await;
    assert_eq!(sockets_to(proxy.port()), 0);
    replica.stop().await;
    stage.end().await;
}

/// A server that takes connections and ends them is tried ever less often: attempts without a pause would take no
/// time.
#[tokio::test]
async fn a_listener_that_is_turned_away_does_not_spin() {
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stage = Stage::new(driver()).await;
    let replica = idle(&stage, &Recorder::new()).await;
    let port = server.local_addr().unwrap().port();
    let options = stage.options().host("127.0.0.1").port(port).ssl_mode(PgSslMode::Disable);
    // A socket's folder would be taken before the host.
    let options = if options.get_socket().is_some() { options.socket("/nowhere") } else { options };
    let listener = PostgresListener::new(options, stage.table.description()).unwrap();
    let listening = listener.start(replica.relay.waker()).unwrap();
    let begin = Instant::now();
    for _ in 0..4 {
        drop(soon("an attempt", server.accept()).await.unwrap());
    }
    assert!(begin.elapsed() > Duration::from_millis(150), "{:?}", begin.elapsed());
    assert!(!listening.is_ended());
    listening.stop().await;
    replica.stop().await;
    stage.end().await;
}

/// Outside of a runtime it is an error, and no panic.
#[test]
fn a_listener_and_a_notifier_outside_of_a_runtime_are_errors() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stage, waker) = runtime.block_on(async {
        let stage = Stage::new(driver()).await;
        let replica = idle(&stage, &Recorder::new()).await;
        let waker = replica.relay.waker();
        replica.stop().await;
        (stage, waker)
    });
    assert!(listener(&stage).start(waker.clone()).is_err());
    assert!(PostgresNotifier::start(stage.database.admin.clone(), &stage.table).is_err());
    // Nobody is there to be woken.
    waker.wake();
    runtime.block_on(stage.end());
}

/// Two tables of one database have two channels, and an answer of one table's writers wakes nobody of the other's.
#[tokio::test]
async fn each_table_has_its_own_channel() {
    let stage = Stage::new(driver()).await;
    let mut ear = ear(&stage).await;
    let other = stage.database.make(&OutboxTable::new("other_outbox")).await;
    stage.database.run(other.notify_trigger_ddl()).await;
    stage.database.append(&other, &[message("acme", "{}")]).await;
    assert_eq!(heard(&stage, &mut ear).await, [""; 0]);
    sqlx::raw_sql(AssertSqlSafe(wake::notify(stage.table.description())))
        .execute(&stage.database.admin)
        .await
        .unwrap();
    assert_eq!(heard(&stage, &mut ear).await, [""]);
    drop(ear);
    stage.end().await;
}
