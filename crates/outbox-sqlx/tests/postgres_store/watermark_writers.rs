//! Watermarks while writers come and go: by chance, with a seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbox_core::{ClaimOutcome, ClaimRequest, MessageId, Settlement, Store};
use outbox_sqlx::OutboxTable;
use sqlx::Connection;

use super::driver::close;
use super::support::{Database, ROLE, eager, ids, message, tenant};

const WRITERS: usize = 8;
const TRANSACTIONS: usize = 60;
const TENANTS: [&str; 2] = ["acme", "globex"];

/// Whatever was pending before a claim began, nothing of it is passed over: the claim hands out the lowest of it, or
/// a lower one still. All is published in the end, though nobody ever looked from zero.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_passed_over_while_writers_come_and_go() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let database = Database::create().await;
    let table = database.make(&OutboxTable::default()).await;
    database.run(format!("GRANT SELECT ON SEQUENCE outbox_message_id_seq TO {ROLE}")).await;
    let writing = Arc::new(AtomicUsize::new(WRITERS));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (table, options, writing) = (table.clone(), database.options.clone(), Arc::clone(&writing));
            let mut random = fastrand::Rng::with_seed(seed ^ u64::try_from(writer).unwrap());
            tokio::spawn(async move {
                let mut connection = sqlx::PgConnection::connect_with(&options).await.unwrap();
                for _ in 0..TRANSACTIONS {
                    let mut transaction = connection.begin().await.unwrap();
                    for _ in 0..random.usize(1..4) {
                        let name = TENANTS[random.usize(..TENANTS.len())];
                        let rolls_back = random.u8(..4) == 0;
                        // One of these gives its table lock back, too, if it was the first.
                        let mut part = transaction.begin().await.unwrap();
                        table.append(&mut part, &message(name, "{}")).await.unwrap();
                        if rolls_back { part.rollback().await } else { part.commit().await }.unwrap();
                        // It draws, and takes its time to commit.
                        tokio::time::sleep(Duration::from_micros(random.u64(..8_000))).await;
                    }
                    if random.u8(..4) == 0 {
                        transaction.rollback().await
                    } else {
                        transaction.commit().await
                    }
                    .unwrap();
                }
                connection.close().await.unwrap();
                writing.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();

    let plain = database.store(table.description());
    let store = database.store(table.description()).with_watermark(eager());
    let mut published = 0;
    loop {
        let are_done = writing.load(Ordering::SeqCst) == 0;
        let mut was_empty = true;
        for name in TENANTS {
            let before = plain.pending(&tenant(name), 1.try_into().unwrap()).await.unwrap();
            let Some(lowest) = before.first().map(|message| message.id.get()) else { continue };
            was_empty = false;
            let request = ClaimRequest::new(tenant(name), 5.try_into().unwrap());
            let ClaimOutcome::Claimed(claimed) = store.claim(&request).await.unwrap() else { panic!("held") };
            let handed_out = ids(&claimed);
            assert!(handed_out.first().is_some_and(|first| *first <= lowest), "{lowest}: {handed_out:?}");
            published += handed_out.len();
            let settlement = Settlement::published(handed_out.into_iter().map(MessageId::new));
            claimed.claim.settle(settlement).await.unwrap();
        }
        if was_empty && are_done {
            break;
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(
        database.number("SELECT count(*) FROM outbox_message").await,
        i64::try_from(published).unwrap()
    );
    assert_eq!(database.number("SELECT count(*) FROM outbox_message WHERE published_at IS NULL").await, 0);
    // It did have watermarks: it does not see what comes to lie below.
    let gap = "(SELECT min(gap) FROM generate_series(1, (SELECT max(id) FROM outbox_message)) AS gap
               WHERE NOT EXISTS (SELECT FROM outbox_message WHERE id = gap))";
    database
        .run(format!(
            "INSERT INTO outbox_message (id, tenant_id, kind, subject_id) VALUES ({gap}, 'acme', 'k', 's')"
        ))
        .await;
    let ClaimOutcome::Claimed(claimed) =
        store.claim(&ClaimRequest::new(tenant("acme"), 5.try_into().unwrap())).await.unwrap()
    else {
        panic!("held")
    };
    assert_eq!(ids(&claimed), Vec::<i64>::new());
    drop(claimed);
    close(plain).await;
    close(store).await;
    database.drop().await;
}
