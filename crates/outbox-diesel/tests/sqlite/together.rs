//! One file, two processes: a relay on sqlx in one, a relay on Diesel in the other. The test binary runs itself again
//! as each of them, and all write into one pipe, whose order is everybody's.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, PipeReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{Accepted, Delivery, PublishError, Publisher, Relay, RelayConfig, Store, async_trait};
use outbox_diesel::OutboxTable;
use outbox_suite::sqlite::{FileDatabase, Open, tenant};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::driver::driver;

const DATABASE: &str = "OUTBOX_TEST_SQLITE_TOGETHER";
const ORM: &str = "OUTBOX_TEST_SQLITE_ORM";
const TENANTS: [&str; 2] = ["acme", "globex"];
const BUSY: Duration = Duration::from_secs(5);

/// What a process does: it relays until its standard input ends. In the test run itself, nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relay_process() {
    let Ok(path) = std::env::var(DATABASE) else { return };
    let orm = std::env::var(ORM).expect("an ORM");
    let store: Arc<dyn Store> = match orm.as_str() {
        "diesel" => Arc::new(driver().store(&Open::named(path).busy(BUSY), OutboxTable::default())),
        "sqlx" => {
            let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY);
            let pool = SqlitePoolOptions::new().connect_lazy_with(options);
            Arc::new(outbox_sqlx::sqlite::SqliteStore::new(pool, OutboxTable::default()).expect("a table"))
        }
        orm => panic!("no such ORM: {orm}"),
    };
    let config = RelayConfig::builder().tenants(TENANTS).poll_interval(Duration::from_millis(3)).build();
    let relay = Relay::builder(store, Said(orm.clone()), config.expect("a configuration"));
    let handle = relay.build().expect("a relay").start().expect("started");
    say(&format!("ready {orm}"));
    let told_to_stop =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    told_to_stop.await.expect("waited").expect("the end of the input");
    handle.stop().await.expect("stopped");
}

/// Says when a publish begins and when it ends.
struct Said(String);

#[async_trait]
impl Publisher for Said {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let what = format!("{} {} {}", self.0, delivery.message.tenant_id, delivery.message.id);
        say(&format!("begins {what}"));
        tokio::task::yield_now().await;
        say(&format!("ends {what}"));
        Ok(Accepted)
    }
}

/// In one write, which a pipe keeps in one piece.
fn say(line: &str) {
    let mut out = std::io::stdout();
    out.write_all(format!("RELAY {line}\n").as_bytes()).and_then(|()| out.flush()).expect("somebody listens");
}

/// A relay process; killed when this is dropped.
struct Process(Child);

impl Process {
    fn start(database: &FileDatabase, orm: &str, out: impl Into<Stdio>) -> Self {
        let child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "together::relay_process", "--nocapture", "--test-threads=1"])
            .env(DATABASE, database.path())
            .env(ORM, orm)
            .stdin(Stdio::piped())
            .stdout(out)
            .spawn();
        Self(child.expect("a process"))
    }

    /// Ends its input, and waits for its own end.
    fn stop(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("it ends").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What all say, in one order.
struct Record {
    said: UnboundedReceiver<String>,
    /// Who publishes what of a tenant at this moment.
    open: BTreeMap<String, String>,
    /// The newest id of each tenant.
    last: BTreeMap<String, i64>,
    published: BTreeMap<String, usize>,
}

impl Record {
    fn of(pipe: PipeReader) -> Self {
        let (sender, said) = unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                if let Some((_, line)) = line.split_once("RELAY ") {
                    let _ = sender.send(line.to_owned());
                }
            }
        });
        Self { said, open: BTreeMap::new(), last: BTreeMap::new(), published: BTreeMap::new() }
    }

    /// The next line, looked at: a publish begins only where none of its tenant is under way, and after all
    /// that are older.
    async fn next(&mut self) {
        let line = tokio::time::timeout(Duration::from_secs(60), self.said.recv()).await;
        let line = line.expect("somebody says something").expect("somebody lives");
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["begins", orm, tenant, id] => {
                let what = format!("{orm} {id}");
                assert_eq!(self.open.insert(tenant.to_owned(), what), None, "under way at {line}");
                let id = id.parse().expect("an id");
                assert!(self.last.insert(tenant.to_owned(), id) < Some(id), "once and in order: {line}");
            }
            ["ends", orm, tenant, id] => {
                assert_eq!(self.open.remove(tenant), Some(format!("{orm} {id}")), "what ends has begun");
                *self.published.entry(orm.to_owned()).or_default() += 1;
            }
            ["ready", orm] => {
                self.published.insert(orm.to_owned(), 0);
            }
            _ => panic!("what is this: {line}"),
        }
    }

    async fn wait_until(&mut self, reached: impl Fn(&BTreeMap<String, usize>) -> bool) {
        while !reached(&self.published) {
            self.next().await;
        }
    }
}

/// Promise: a relay process on sqlx and one on Diesel never publish a tenant at once, and together publish each
/// message once and in order. Goes on until each had its turn several times.
#[tokio::test]
async fn a_process_on_sqlx_and_one_on_diesel_take_turns_on_one_file_and_never_overlap() {
    let database = FileDatabase::new(driver()).await;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let processes = ["sqlx", "diesel"]
        .map(|orm| Process::start(&database, orm, writer.try_clone().expect("the pipe's other end")));
    drop(writer);
    let mut record = Record::of(reader);
    record.wait_until(|published| published.len() == 2).await;
    let mut written = 0;
    while record.published.values().any(|count| *count < 20) {
        for name in TENANTS {
            written += database.commit(&tenant(name), 10).await.len();
        }
        record.wait_until(|published| published.values().sum::<usize>() == written).await;
        assert!(written < 20_000, "one of them never had a turn: {:?}", record.published);
    }
    for process in processes {
        process.stop();
    }
    assert_eq!(record.said.recv().await, None, "nothing is published twice");
    assert_eq!(database.marked().await, i64::try_from(written).expect("few"));
}
