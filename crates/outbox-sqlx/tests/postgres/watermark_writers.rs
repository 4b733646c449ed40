//! Watermarks while writers, other replicas and operators come and go: by chance, with a seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use outbox_core::{
    ClaimOutcome, ClaimRequest, Claimed, MessageId, ProbeRequest, Settlement, Settling, Store, Tenants,
};
use outbox_sqlx::OutboxTable;
use outbox_suite::AnyStore;
use outbox_suite::postgres::{Database, ROLE, eager};
use outbox_suite::server::{ids, message, tenant};
use servers::Postgres;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::task::JoinSet;

use super::driver::driver;

const TENANTS: [&str; 3] = ["acme", r"o'h\ara\'; --", "snow \u{2603}\u{10ffff}"];
const SUBJECTS: [&str; 3] = ["a", "b", "c"];
const WRITERS: u64 = 6;
/// How many each of them makes.
const TRANSACTIONS: usize = 60;

/// Transactions that draw ids and take their time, take parts of themselves back (and with a part, perhaps, the lock on
/// the table), are prepared, and end as they like.
async fn write(database: Database, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut session = PgConnection::connect_with(&database.options).await.unwrap();
    for number in 0..TRANSACTIONS {
        session.execute("BEGIN").await.unwrap();
        for _ in 0..random.usize(1..6) {
            let part = random.choice(["ROLLBACK TO part", "RELEASE part", "", ""]).unwrap();
            if !part.is_empty() {
                session.execute("SAVEPOINT part").await.unwrap();
            }
            sqlx::query("INSERT INTO outbox_message (tenant_id, kind, subject_id) VALUES ($1, 'k', $2)")
                .bind(random.choice(TENANTS))
                .bind(random.choice(SUBJECTS))
                .execute(&mut session)
                .await
                .unwrap();
            session.execute(part).await.unwrap();
            tokio::time::sleep(Duration::from_micros(random.u64(..4_000))).await;
        }
        let longest = if random.u8(..12) == 0 { 80 } else { 4 };
        tokio::time::sleep(Duration::from_millis(random.u64(..longest))).await;
        let end = random.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]).unwrap();
        if random.u8(..6) == 0 {
            let name = format!("'{seed} {number}'");
            session.execute(AssertSqlSafe(format!("PREPARE TRANSACTION {name}"))).await.unwrap();
            tokio::time::sleep(Duration::from_millis(random.u64(..30))).await;
            session.execute(AssertSqlSafe(format!("{end} PREPARED {name}"))).await.unwrap();
        } else {
            session.execute(end).await.unwrap();
        }
    }
}

/// What a tenant has pending, of other subjects than this.
async fn pending(database: &Database, tenant_id: &str, excluded: Option<&str>) -> BTreeSet<i64> {
    let select = "SELECT id FROM outbox_message
                  WHERE published_at IS NULL AND tenant_id = $1 AND subject_id IS DISTINCT FROM $2";
    let ids = sqlx::query_scalar(select).bind(tenant_id).bind(excluded).fetch_all(&database.admin);
    ids.await.unwrap().into_iter().collect()
}

/// Claims, and settles all of it or some, or nothing, or drops the claim. Whatever is pending both before the claim and
/// while it lasts was pending when it looked: nothing of that is passed over. Ends once `ends` and nothing is pending.
async fn relay(database: Database, store: AnyStore, ends: Arc<AtomicBool>, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut tenants = TENANTS.into_iter().cycle();
    let mut left = TENANTS.len();
    while left > 0 {
        let tenant_id = tenants.next().unwrap();
        let is_end = ends.load(Ordering::SeqCst);
        let excluded = if is_end || random.u8(..6) > 0 { None } else { random.choice(SUBJECTS) };
        let limit = random.u32(1..40);
        let request = ClaimRequest::new(tenant(tenant_id), limit.try_into().unwrap())
            .with_excluded_subjects(excluded.into_iter().map(str::to_owned).collect::<Vec<_>>());
        if random.u8(..6) == 0 {
            probe(&database, &store, tenant_id, random.bool()).await;
        }
        let before = pending(&database, tenant_id, excluded).await;
        // Another replica's, or killed.
        let Ok(ClaimOutcome::Claimed(claimed)) = store.claim(&request).await else { continue };
        let now = pending(&database, tenant_id, excluded).await;
        let handed_out = ids(&claimed);
        let end = handed_out.last().copied().filter(|_| handed_out.len() == limit as usize);
        for id in before.intersection(&now) {
            assert!(
                handed_out.contains(id) || end.is_some_and(|end| *id > end),
                "{id} of {tenant_id} is passed over by a claim of {limit} without {excluded:?}: {handed_out:?}"
            );
        }
        left = if is_end && handed_out.is_empty() { left - 1 } else { TENANTS.len() };
        let how_many = random.usize(..=handed_out.len());
        let published: Vec<i64> = match random.u8(..12) {
            0 => continue,
            1 => handed_out[..how_many].to_vec(),
            2 => handed_out.into_iter().filter(|_| random.u8(..8) > 0).collect(),
            _ => handed_out,
        };
        let _killed_or_done = settle(claimed, &published).await;
    }
}

/// Whatever is pending both before a probe and after it, the probe finds that or something lower.
async fn probe(database: &Database, store: &AnyStore, tenant_id: &str, is_named: bool) {
    let tenants = if is_named { Tenants::Named([tenant(tenant_id)].into()) } else { Tenants::Discovered };
    let before = pending(database, tenant_id, None).await;
    let found = store.probe(&ProbeRequest::new(tenants)).await.unwrap().oldest;
    let now = pending(database, tenant_id, None).await;
    let found = found.iter().find(|oldest| oldest.tenant_id.as_str() == tenant_id);
    let found = found.map(|oldest| oldest.id.get());
    if let Some(lowest) = before.intersection(&now).next() {
        assert!(found.is_some_and(|id| id <= *lowest), "{lowest} of {tenant_id} is passed over: {found:?}");
    }
}

async fn settle(claimed: Claimed, published: &[i64]) -> Result<(), outbox_core::StoreError> {
    claimed.claim.settle(Settlement::published(published.iter().copied().map(MessageId::new))).await
}

/// What operators do at the worst moment.
async fn disturb(database: Database, ends: Arc<AtomicBool>, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut session = PgConnection::connect_with(&database.options).await.unwrap();
    session.execute("SET lock_timeout = 30").await.unwrap();
    while !ends.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(random.u64(..120))).await;
        let statements = [
            "VACUUM outbox_message",
            "VACUUM FULL outbox_message",
            "REINDEX TABLE outbox_message",
            "ALTER TABLE outbox_message SET (fillfactor = 90)",
            "",
        ];
        match random.choice(statements).unwrap() {
            "" => drop(database.terminate_holders().await),
            // It may not get its lock.
            statement => drop(session.execute(statement).await),
        }
    }
}

/// Each claim hands out what one without a watermark would, and each probe finds it, though nothing is ever looked at from zero because it is
/// time: of stores that mark and that delete, with their clones and with a relay that has no watermark.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_passed_over_while_writers_come_and_go() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let server = Postgres::start(&[("max_prepared_transactions", "10")]).unwrap();
    let database = Database::on(driver(), &server, "writers").await;
    let table = database.make(&OutboxTable::default()).await;
    database
        .run(format!(
            "GRANT DELETE ON outbox_message TO {ROLE}; GRANT SELECT ON SEQUENCE outbox_message_id_seq TO {ROLE}"
        ))
        .await;
    let store = || database.store(table.description());
    let marks = store().with_watermark(eager());
    let deletes = store().with_settling(Settling::Delete).with_watermark(eager());

    let (mut writers, mut others) = (JoinSet::new(), JoinSet::new());
    let ends = Arc::new(AtomicBool::new(false));
    for writer in 0..WRITERS {
        writers.spawn(write(database.clone(), seed.wrapping_add(writer)));
    }
    for (number, store) in (WRITERS..).zip([marks.clone(), marks.clone(), deletes, store()]) {
        let seed = seed.wrapping_add(number);
        others.spawn(relay(database.clone(), store, Arc::clone(&ends), seed));
    }
    others.spawn(disturb(database.clone(), Arc::clone(&ends), seed));
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    ends.store(true, Ordering::SeqCst);
    while let Some(other) = others.join_next().await {
        other.unwrap();
    }
    assert_eq!(database.number("SELECT count(*) FROM outbox_message WHERE published_at IS NULL").await, 0);

    // It does have watermarks: it does not see what comes to lie below one.
    let request = ClaimRequest::new(tenant("acme"), 10.try_into().unwrap());
    for _ in 0..3 {
        let backlog = database.append(&table, &vec![message("acme", "{}"); 10]).await;
        let ClaimOutcome::Claimed(claimed) = marks.claim(&request).await.unwrap() else { panic!("held") };
        assert_eq!(ids(&claimed), backlog);
        settle(claimed, &backlog).await.unwrap();
    }
    database
        .run("INSERT INTO outbox_message (id, tenant_id, kind, subject_id) VALUES (-1, 'acme', 'k', 's')")
        .await;
    let ClaimOutcome::Claimed(claimed) = marks.claim(&request).await.unwrap() else { panic!("held") };
    assert_eq!(ids(&claimed), Vec::<i64>::new());
}
