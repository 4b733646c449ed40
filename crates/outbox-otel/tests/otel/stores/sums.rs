//! What is counted adds up with a real table, whatever ends the sessions.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    Accepted, Delivery, MessageId, NewMessage, PublishError, Publisher, RefusalClass, Relay, RelayConfig,
    SystemClock, TenantId, async_trait,
};
use outbox_otel::{MetricsObserver, names};
use outbox_sqlx::OutboxTable;
use outbox_testkit::{FaultyPublisher, PublishFault, Recorder, When};
use sqlx::PgPool;

use super::postgres::Database;
use crate::support::{Meters, Point, whole};

/// Of each tenant.
const MESSAGES: usize = 40;

fn tenant(id: &str) -> TenantId {
    TenantId::new(id).expect("a tenant id")
}

fn orders(of: &str, count: usize) -> Vec<NewMessage> {
    (0..count).map(|n| NewMessage::new(tenant(of), "order.placed", format!("order-{n}"), "{}")).collect()
}

/// Ends the session that holds a message's tenant, once it was accepted, as an operator or a fail-over does.
struct EndsSessions {
    inner: Recorder,
    admin: PgPool,
    at: Vec<MessageId>,
    ended: Arc<std::sync::Mutex<Vec<MessageId>>>,
}

#[async_trait]
impl Publisher for EndsSessions {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let accepted = self.inner.publish(delivery).await?;
        let message = delivery.message;
        let is_first = {
            let mut ended = self.ended.lock().expect("nobody panics with it");
            let is_first = self.at.contains(&message.id) && !ended.contains(&message.id);
            ended.extend(is_first.then_some(message.id));
            is_first
        };
        if is_first {
            // The second half of the key is the tenant's.
            let end = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_locks
                 WHERE locktype = 'advisory' AND granted AND objid::bigint = hashtext($1)::bigint & 4294967295
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
            let ended: i64 = sqlx::query_scalar(end)
                .bind(message.tenant_id.as_str())
                .fetch_one(&self.admin)
                .await
                .expect("ended");
            assert_eq!(ended, 1, "one session held it");
        }
        Ok(accepted)
    }
}

/// Refusals, panics, a deadline, lost acknowledgements, and one publish that is slow.
fn break_some(publisher: &FaultyPublisher) {
    let fail = |times, of, fault| publisher.fail_times(times, When::Tenant(tenant(of)), fault);
    fail(3, "refused", PublishFault::Refuse(RefusalClass::Refused));
    fail(2, "refused", PublishFault::Refuse(RefusalClass::Unavailable));
    fail(1, "refused", PublishFault::Refuse(RefusalClass::Rejected));
    fail(2, "panics", PublishFault::PanicInPoll);
    fail(1, "panics", PublishFault::PanicEagerly);
    fail(1, "hangs", PublishFault::Hang);
    fail(2, "unheard", PublishFault::LoseAcknowledgement);
    fail(1, "slow", PublishFault::Slow(Duration::from_millis(1_050)));
}

/// A batch ends by nothing but its messages and its faults.
fn config() -> RelayConfig {
    let config = RelayConfig::builder()
        .discover_tenants()
        .poll_interval(Duration::from_millis(10))
        .max_back_off(Duration::from_millis(100))
        .max_batch_time(Duration::from_secs(60))
        .publish_timeout(Duration::from_secs(3))
        .stop_timeout(Duration::from_millis(50));
    config.build().expect("valid")
}

/// All that two replicas counted.
struct Counted([Meters; 2]);

impl Counted {
    fn points(&self) -> Vec<Point> {
        self.0.iter().flat_map(Meters::collect).collect()
    }

    fn assert_none_negative(&self) {
        let negative = self.points().into_iter().find(|point| point.value < 0.0);
        assert!(negative.is_none(), "{negative:?}");
    }
}

/// Two replicas work off a table while publishes are refused, panic, hang, lose their acknowledgement, and
/// sessions are ended by the server, in quick batches (the settlement finds out) and in slow ones (a
/// verification does); a stop then cancels a publish. Published + refused + lost = attempts, as the publisher
/// saw them; accepted = marked + unmarked; what was marked is what the table says; no gauge was ever negative.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_add_up_with_a_postgres_table() {
    let database = Database::create("sums", OutboxTable::default()).await;
    for of in ["well", "refused", "panics", "hangs", "unheard"] {
        database.append(&orders(of, MESSAGES)).await.expect("appended");
    }
    let quick = database.append(&orders("quick", MESSAGES)).await.expect("appended");
    let too = database.append(&orders("quick too", MESSAGES)).await.expect("appended");
    let slow = database.append(&orders("slow", 4)).await.expect("appended");
    let recorder = Recorder::new();
    let sessions = EndsSessions {
        inner: recorder.clone(),
        admin: database.pool.clone(),
        // The last of a batch: what a session that is gone publishes next would end the session of another holder.
        at: vec![quick[31], quick[39], too[31], slow[0]],
        ended: Arc::default(),
    };
    let ended = Arc::clone(&sessions.ended);
    let publisher = FaultyPublisher::new(sessions, Arc::new(SystemClock::new()));
    break_some(&publisher);
    let counted = Counted([Meters::new(), Meters::new()]);
    let [first, second] = counted.0.each_ref().map(|meters| {
        let builder = Relay::builder(database.store_on(None), publisher.clone(), config());
        let relay = builder.observer(MetricsObserver::new(&meters.meter())).build().expect("valid");
        relay.start().expect("there is a runtime")
    });
    let pending = "SELECT count(*) FROM outbox_message WHERE published_at IS NULL";
    let worked_off = database.wait_for(pending, 0);
    tokio::pin!(worked_off);
    loop {
        tokio::select! {
            () = &mut worked_off => break,
            () = tokio::time::sleep(Duration::from_millis(3)) => counted.assert_none_negative(),
        }
    }
    assert_eq!(ended.lock().expect("nobody panics with it").len(), 4, "every session was ended");
    // And one that the stop cancels.
    publisher.fail(When::Tenant(tenant("dropped")), PublishFault::Hang);
    database.append(&orders("dropped", 1)).await.expect("appended");
    let active = || counted.0.iter().map(|meters| meters.total(names::PUBLISH_ACTIVE, &[])).sum::<f64>();
    let publishing = async {
        while active() < 0.5 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(50), publishing).await.expect("it is being published");
    // At once: one that goes on would take over what the other's stop cancels.
    let (first, second) = tokio::join!(first.stop(), second.stop());
    first.and(second).expect("they stop");

    counted.assert_none_negative();
    let points = counted.points();
    let sum = |name: &str, failed: Option<&str>| -> u64 {
        let series = points.iter().filter(|point| point.name == name);
        let series = series
            .filter(|point| point.attributes.get(names::ERROR_TYPE).map(String::as_str) == failed)
            .map(|point| if point.count > 0 { point.count } else { whole(point.value) });
        series.sum()
    };
    let sent = |failed| sum(names::SENT_MESSAGES, failed);
    let failures: u64 = names::ERROR_TYPES.iter().map(|(failed, _)| sent(Some(failed))).sum();
    let attempts = sum(names::PUBLISH_ATTEMPTS, None);
    assert_eq!(attempts, u64::from(publisher.calls()));
    assert_eq!(attempts, sent(None) + failures, "published + refused + lost = attempts");
    let failed = ["refused", "unavailable", "rejected", "panic", "timeout", "lost"].map(|f| sent(Some(f)));
    assert_eq!(failed, [3, 2 + 2, 1, 3, 1, 1], "lost acknowledgements are unavailable");
    assert_eq!(sum(names::PUBLISH_ACTIVE, None), 0);

    let accepted =
        recorder.deliveries().iter().filter(|delivery| delivery.accepted == Some(true)).count() as u64;
    assert_eq!(sent(None), accepted - 2, "all but the two whose acknowledgement was lost");
    let (marked, unmarked) = (sum(names::SETTLED_MESSAGES, None), sum(names::UNSETTLED_MESSAGES, None));
    assert_eq!(sent(None), marked + unmarked, "accepted = marked + unmarked");
    let in_table =
        database.number("SELECT count(*) FROM outbox_message WHERE published_at IS NOT NULL").await;
    assert_eq!(i64::try_from(marked), Ok(in_table));
    assert_eq!(database.number(pending).await, 1, "what the stop cancelled is pending");
    let again: usize = recorder.duplicates().values().map(|times| times - 1).sum();
    assert_eq!(accepted, marked + again as u64, "what was not marked was published again");

    let of_duration = |name: &str| -> u64 {
        let failed = points.iter().filter(|p| p.name == name && p.attributes.contains_key(names::ERROR_TYPE));
        failed.map(|point| point.count).sum()
    };
    let (verifications, settlements) =
        (of_duration(names::VERIFY_DURATION), of_duration(names::SETTLE_DURATION));
    assert_eq!((verifications, settlements), (1, 3), "the slow batch and the quick ones");
    let lost = points.iter().filter(|point| point.name == names::CLAIMS_LOST).map(|point| whole(point.value));
    assert_eq!(lost.sum::<u64>(), 4);
}
