//! Several processes on one file: the test binary runs itself again as another holder.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outbox_core::{MessageId, Settlement};
use outbox_sql::OutboxTable;

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, Open, claim, ids, request, tenant, try_claim};
use crate::{AnyStore, test_named};

const DATABASE: &str = "OUTBOX_TEST_SQLITE_CHILD";
const ROLE: &str = "OUTBOX_TEST_SQLITE_ROLE";

/// What a child process does; in the test run itself, nothing.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn child(driver: Driver) {
    let Ok(path) = std::env::var(DATABASE) else { return };
    let store = driver.store(&Open::named(path).busy(Duration::from_secs(5)), OutboxTable::default());
    match std::env::var(ROLE).as_deref() {
        Ok("hold") => hold(&store).await,
        Ok("drain") => drain(&store).await,
        role => panic!("no such role: {role:?}"),
    }
}

/// Says what it holds, and holds it until it is killed.
async fn hold(store: &AnyStore) {
    let claimed = claim(store, &tenant("acme")).await;
    say(&format!("holds {}", claimed.messages.len()));
    std::future::pending::<()>().await;
}

/// Publishes what it can claim, by saying it, and ends when nothing is pending.
async fn drain(store: &AnyStore) {
    use outbox_core::{ClaimOutcome, Store as _};
    let tenants = ["acme", "globex"].map(tenant);
    loop {
        let mut empty = 0;
        for tenant in &tenants {
            match store.claim(&request(tenant, 7)).await.expect("a claim") {
                ClaimOutcome::Claimed(claimed) if claimed.messages.is_empty() => empty += 1,
                ClaimOutcome::Claimed(claimed) => {
                    let published = ids(&claimed);
                    for id in &published {
                        say(&format!("published {tenant} {id}"));
                    }
                    claimed.claim.settle(Settlement::published(published)).await.expect("settled");
                }
                _ => {}
            }
        }
        if empty == tenants.len() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "CHILD {line}").and_then(|()| out.flush()).expect("somebody listens");
}

fn start(database: &FileDatabase, role: &str) -> Child {
    let child = test_named(database.driver.place, "sqlite::faults::processes::child");
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", &child, "--nocapture", "--test-threads=1"])
        .env(DATABASE, database.path())
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process")
}

/// The lines that a child says, until it ends.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let out = child.stdout.take().expect("the child's output");
    BufReader::new(out)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.split_once("CHILD ").map(|(_, said)| said.to_owned()))
}

/// Promise: a killed process frees its tenants at once, with no lease to wait for, and marked nothing.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_killed_holder_frees_its_tenant_at_once_and_marked_nothing(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let acme = tenant("acme");
    let written = database.commit(&acme, 3).await;
    let store = database.store();
    for _ in 0..5 {
        let mut child = start(&database, "hold");
        let said = lines(&mut child).next();
        let held = try_claim(&store, &acme).await.expect("a claim").is_none();
        // SIGKILL: nothing of the child runs any more.
        child.kill().and_then(|()| child.wait()).expect("the child ends");
        assert_eq!(said.as_deref(), Some("holds 3"));
        assert!(held, "the child's claim excludes this process");
        let again = claim(&store, &acme).await;
        assert_eq!(ids(&again), written);
        assert_eq!(database.marked().await, 0);
    }
}

/// Promise: processes that take turns publish each message once, and each tenant's in order.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn processes_take_turns_and_publish_everything_once_and_in_order(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let tenants = ["acme", "globex"].map(tenant);
    let mut written = BTreeMap::new();
    for tenant in &tenants {
        written.insert(tenant.as_str().to_owned(), database.commit(tenant, 150).await);
    }
    let mut children: Vec<Child> = (0..3).map(|_| start(&database, "drain")).collect();
    let said = children.iter_mut().map(lines).collect::<Vec<_>>();
    let readers = said.into_iter().map(|lines| std::thread::spawn(move || lines.collect::<Vec<_>>()));
    let said: Vec<Vec<String>> =
        readers.collect::<Vec<_>>().into_iter().map(|reader| reader.join().expect("read")).collect();
    for child in &mut children {
        assert!(child.wait().expect("it ends").success());
    }
    let mut published: BTreeMap<String, Vec<MessageId>> = BTreeMap::new();
    for lines in &said {
        let mut last: BTreeMap<&str, MessageId> = BTreeMap::new();
        for line in lines {
            let [_, tenant, id] = line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
            let id: MessageId = id.parse().expect("an id");
            assert!(last.insert(tenant, id) < Some(id), "one process publishes {tenant} in order");
            published.entry(tenant.to_owned()).or_default().push(id);
        }
    }
    for ids in published.values_mut() {
        ids.sort_unstable();
    }
    assert_eq!(published, written, "each message was published once");
    assert_eq!(database.marked().await, 300);
}
