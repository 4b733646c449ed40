//! Relay processes that are killed or frozen: the test binary runs itself again as another replica.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use outbox_core::{Accepted, Delivery, OperationKind, PublishError, Publisher, async_trait};
use outbox_sql::OutboxTable;
use outbox_testkit::Recorder;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::server::{
    Driver, Entry, PrivateServer as _, Replica, SOON, ServerDatabase, Stage, quick, soon, tenant,
};
use crate::test_named;

const URL: &str = "OUTBOX_TEST_REPLICA_URL";
const WAIT_AT: &str = "OUTBOX_TEST_REPLICA_WAITS_AT";
/// Waits before its second claim, and at no message.
pub(crate) const CLAIM: &str = "claim";

/// What the other process does; in the test run itself, nothing.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn other_process<D: ServerDatabase>(driver: Driver<D>) {
    let Ok(url) = std::env::var(URL) else { return };
    let options = D::Options::from_str(&url).unwrap();
    let wait_at = std::env::var(WAIT_AT).unwrap();
    let waits_at_claim = wait_at == CLAIM;
    let spoken = Spoken { wait_at: wait_at.parse().unwrap_or_default() };
    // Waiting at a claim it has one connection, on which each statement is prepared by then, and no probe between.
    let (size, config) =
        if waits_at_claim { (1, quick().poll_interval(Duration::from_mins(1))) } else { (3, quick()) };
    let store = driver.pool(options, size).store(&OutboxTable::default());
    let replica = Replica::start(&store, spoken, config);
    if waits_at_claim {
        replica.journal.wait_for(1, |entry| matches!(entry, Entry::Settled(_))).await;
        replica.journal.before_next(OperationKind::Claim, || {
            say("claims");
            listen();
        });
        say("is ready");
        tokio::task::spawn_blocking(listen).await.unwrap();
        replica.relay.wake();
    }
    replica.journal.wait_for(1, |entry| matches!(entry, Entry::BackedOff { .. })).await;
    say("backs off");
    std::future::pending::<()>().await;
}

/// Says each publish, and waits inside one of them until it is told to go on.
struct Spoken {
    wait_at: i64,
}

#[async_trait]
impl Publisher for Spoken {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let id = delivery.message.id.get();
        say(&format!("publishes {id}"));
        if id == self.wait_at {
            tokio::task::spawn_blocking(listen).await.unwrap();
        }
        Ok(Accepted)
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "OTHER {line}").and_then(|()| out.flush()).expect("somebody listens");
}

/// Waits until it is told to go on.
fn listen() {
    std::io::stdin().lines().next().unwrap().unwrap();
}

/// The other process. It is killed when this is dropped.
pub(crate) struct Other {
    child: Child,
    pub(crate) stdin: ChildStdin,
    said: UnboundedReceiver<String>,
}

impl Other {
    pub(crate) fn start(place: &str, url: &str, wait_at: &str) -> Self {
        let other = test_named(place, "server::faults::processes::other_process");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &other, "--nocapture", "--test-threads=1"])
            .env(URL, url)
            .env(WAIT_AT, wait_at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, said) = unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some((_, said)) = line.split_once("OTHER ") {
                    let _ = sender.send(said.to_owned());
                }
            }
        });
        Self { child, stdin, said }
    }

    pub(crate) async fn says(&mut self) -> String {
        soon("the other process says something", self.said.recv()).await.expect("the other process ended")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).unwrap();
    }

    /// Freezes it, and waits until it stands still: on a busy machine that is later than the signal.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
        waitid(WaitId::Pid(self.id()), WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).unwrap();
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap()).unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// SIGKILL in the middle of a batch: the other replica takes over at its next look, and only what the killed one
/// had published of that batch is published again.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_killed_relay_process_is_taken_over_at_once_and_only_its_batch_is_repeated<
    D: ServerDatabase,
>(
    driver: Driver<D>,
) {
    let server = D::tcp_server();
    let stage = Stage::on(driver, server, "killed").await;
    let written = stage.append("acme", 6).await;
    let mut process = Other::start(driver.place, &server.url(stage.database.name()), &written[2].to_string());
    for id in &written[..3] {
        assert_eq!(process.says().await, format!("publishes {id}"));
    }
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    replica.journal.wait_for(2, |entry| *entry == Entry::Held).await;
    assert!(recorder.deliveries().is_empty());

    process.signal(Signal::KILL);
    let begin = Instant::now();
    soon("this replica publishes", recorder.wait_for_accepted(6)).await;
    assert!(begin.elapsed() < SOON, "taken over after {:?}", begin.elapsed());
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    assert!(process.said.recv().await.is_none(), "the killed process said more");
    replica.stop().await;
    stage.end().await;
}

/// SIGSTOP for longer than the server keeps its session: on waking the relay ends the message that it was in,
/// notices that it lost the tenant before its next publish, and marks nothing that is not its own.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_frozen_relay_process_notices_on_waking_that_it_lost_the_tenant<D: ServerDatabase>(
    driver: Driver<D>,
) {
    let server = D::tcp_server();
    let stage = Stage::on(driver, server, "frozen").await;
    let written = stage.append("acme", 5).await;
    let mut process = Other::start(driver.place, &server.url(stage.database.name()), &written[1].to_string());
    for id in &written[..2] {
        assert_eq!(process.says().await, format!("publishes {id}"));
    }
    process.freeze();
    let frozen = Instant::now();
    let recorder = Recorder::new();
    let replica = Replica::start(&stage.store(3), recorder.clone(), quick());
    replica.journal.wait_for(2, |entry| *entry == Entry::Held).await;
    // What keepalives or an operator do to a client that does not answer.
    assert_eq!(stage.database.terminate_holders().await, 1);
    soon("this replica publishes", recorder.wait_for_accepted(5)).await;
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), written);
    let marked = "SELECT cast(max(published_at) AS char(40)) FROM outbox_message";
    let before = stage.database.text(marked).await;

    writeln!(process.stdin, "go on").unwrap();
    // Real time: the freeze has to be longer than the second within which a holder verifies its claim.
    tokio::time::sleep(Duration::from_millis(1_100).saturating_sub(frozen.elapsed())).await;
    process.signal(Signal::CONT);
    assert_eq!(process.says().await, "backs off", "it published without the tenant");
    assert_eq!(stage.database.text(marked).await, before, "it marked what it did not hold");
    replica.stop().await;

    // It lives, and works again.
    let later = stage.append("acme", 1).await;
    assert_eq!(process.says().await, format!("publishes {}", later[0]));
    stage.wait_until_published().await;
    drop(process);
    stage.end().await;
}
