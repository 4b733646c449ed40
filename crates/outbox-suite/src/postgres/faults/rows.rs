//! Rows that are hostile, large, or from another time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::{
    Accepted, Delivery, HealthProblem, MessageId, NewMessage, OutboxMessage, PublishError, Publisher,
    TenantState, async_trait,
};
use outbox_sql::OutboxTable;
use outbox_testkit::Recorder;

use sqlx::ConnectOptions as _;

use crate::postgres::{Driver, Stage};
use crate::server::{Entry, Replica, message, quick, soon, tenant};

/// Keeps what it gets.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<OutboxMessage>>>);

#[async_trait]
impl Publisher for Kept {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.0.lock().unwrap().push(delivery.message.clone());
        Ok(Accepted)
    }
}

/// A row that cannot be read, made so by `spoil`, stops its tenant at that row. Others flow, health names the row,
/// and the tenant goes on once `repair` is done.
async fn stops_its_tenant_only(driver: Driver, spoil: &str, repair: &str, column: &str) {
    let stage = Stage::new(driver).await;
    stage
        .database
        .run(
            "ALTER TABLE outbox_message DROP CONSTRAINT outbox_message_headers_check,
                 ALTER COLUMN kind DROP NOT NULL, ALTER COLUMN subject_id DROP NOT NULL",
        )
        .await;
    let acme = stage.append("acme", 3).await;
    let hostile = acme[1];
    stage.database.run(format!("UPDATE outbox_message SET {spoil} WHERE id = {hostile}")).await;
    let recorder = Recorder::new();
    let config = quick().max_lag(Duration::from_millis(1));
    let replica = Replica::start(&stage.store(4), recorder.clone(), config);
    for wave in 1..=3 {
        stage.append("globex", 10).await;
        soon("the other tenant flows", recorder.wait_for_accepted(1 + wave * 10)).await;
    }
    let acme_is_red = |problem: &HealthProblem| match problem {
        HealthProblem::Behind { tenant, .. } => tenant.as_str() == "acme",
        HealthProblem::Unreadable { tenant, message } => tenant.as_str() == "acme" && *message == hostile,
        _ => false,
    };
    let report = replica
        .health(|report| {
            let doing = report.tenants.get("acme").map(|acme| &acme.state);
            report.problems.iter().any(acme_is_red)
                && matches!(doing, Some(TenantState::BackingOff { reason, .. })
                    if reason.contains(&format!("row {hostile} ")) && reason.contains(column))
        })
        .await;
    assert_eq!(report.tenants.get("acme").unwrap().oldest, Some(hostile), "{report}");
    assert_eq!(recorder.accepted(&tenant("acme")), acme[..1], "what comes after the row waits");

    stage.database.run(format!("UPDATE outbox_message SET {repair} WHERE id = {hostile}")).await;
    stage.wait_until_published().await;
    assert_eq!(recorder.accepted(&tenant("acme")), acme);
    replica.health(outbox_core::HealthReport::is_healthy).await;
    recorder.assert_in_order();
    replica.stop().await;
    stage.end().await;
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn an_infinite_timestamp_stops_its_tenant_only_and_health_names_the_row(driver: Driver) {
    stops_its_tenant_only(driver, "occurred_at = 'infinity'", "occurred_at = now()", "occurred_at").await;
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn headers_that_are_no_object_stop_their_tenant_only_and_health_names_the_row(
    driver: Driver,
) {
    stops_its_tenant_only(driver, "headers = '[]'", "headers = '{}'", "headers").await;
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_kind_that_is_null_stops_its_tenant_only_and_health_names_the_row(driver: Driver) {
    stops_its_tenant_only(driver, "kind = NULL", "kind = 'kind'", "kind").await;
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_subject_that_is_null_stops_its_tenant_only_and_health_names_the_row(driver: Driver) {
    stops_its_tenant_only(driver, "subject_id = NULL", "subject_id = 'subject'", "subject_id").await;
}

/// Ten megabytes go through byte by byte, and so does a tenant whose name fills an index entry.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_large_payload_and_a_long_tenant_go_through(driver: Driver) {
    let stage = Stage::new(driver).await;
    let large: Vec<u8> =
        (0..10_000_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    // Characters of two and four bytes that no compression makes short.
    let mut random = fastrand::Rng::with_seed(36);
    let long: String = std::iter::repeat_with(|| random.char('\u{400}'..'\u{10000}')).take(600).collect();
    let messages = [
        NewMessage::new(tenant("acme"), "large", "subject", large.clone()),
        NewMessage::new(tenant(&long), "long", "subject", "{}"),
    ];
    let written = stage.database.append(&stage.table, &messages).await;
    let kept = Kept::default();
    let replica = Replica::start(&stage.store(4), kept.clone(), quick());
    stage.wait_until_published().await;
    let mut got = kept.0.lock().unwrap().clone();
    got.sort_by_key(|message| message.id);
    assert_eq!(got.iter().map(|message| message.id.get()).collect::<Vec<_>>(), written);
    assert!(got[0].payload.as_ref().unwrap().as_bytes() == large, "the payload came out otherwise");
    assert_eq!(got[1].tenant_id, tenant(&long));
    replica.stop().await;

    // One more than an index entry holds is refused where it is written.
    let longer = NewMessage::new(tenant(&long.repeat(2)), "long", "subject", "{}");
    let error =
        stage.table.append(&mut stage.database.admin.acquire().await.unwrap(), &longer).await.unwrap_err();
    assert!(format!("{error:?}").contains("Invalid"), "{error:?}");
    stage.end().await;
}

/// Session time zones, date styles and applications' clocks change nothing: times come back as written, a message
/// from the future is published, and no lag is negative.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn clocks_and_time_zones_that_disagree_change_nothing(driver: Driver) {
    let stage = Stage::new(driver).await;
    let settings = ["TimeZone = 'Asia/Kathmandu'", "DateStyle = 'SQL, DMY'", "IntervalStyle = 'iso_8601'"]
        .map(|setting| format!("ALTER DATABASE {} SET {setting}", stage.database.name));
    stage.database.run(settings.join("; ")).await;
    let now = outbox_core::Timestamp::from(std::time::SystemTime::now());
    let hour = 3_600_000_000;
    let times = [now.as_micros() + hour, now.as_micros() - hour, 1_711_846_800_123_456]
        .map(outbox_core::Timestamp::from_micros);
    let messages =
        times.map(|time| NewMessage::new(tenant("acme"), "kind", "subject", "{}").with_occurred_at(time));
    // Written by a session of the application's, with the settings.
    let mut writer = stage.options().connect().await.unwrap();
    stage.table.append_all(&mut writer, &messages).await.unwrap();
    let store = stage.store(4);
    let health = outbox_core::HealthCheck::new(store.clone(), &quick().build().unwrap()).check().await;
    assert_eq!(
        health.tenants.get("acme").unwrap().lag,
        Some(Duration::ZERO),
        "of a message from the future: {health:?}"
    );

    let kept = Kept::default();
    let replica = Replica::start(&store, kept.clone(), quick());
    stage.wait_until_published().await;
    let got: Vec<_> = kept.0.lock().unwrap().iter().map(|message| message.occurred_at).collect();
    assert_eq!(got, times);
    replica.stop().await;
    stage.end().await;
}

/// Schemas and tables whose names need quotes, or have a namesake in `public`: each relay publishes its own table.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn names_that_need_quotes_reach_the_right_table(driver: Driver) {
    let longest = "n".repeat(63);
    for (schema, name) in [
        ("My-Schema", "select"),
        ("a\"b", "my table"),
        ("select", longest.as_str()),
        ("lower", "outbox_message"),
    ] {
        let stage = Stage::new(driver).await;
        stage.append("acme", 2).await;
        stage
            .database
            .run(format!(
                "CREATE SCHEMA \"{0}\"; GRANT USAGE ON SCHEMA \"{0}\" TO PUBLIC",
                schema.replace('"', "\"\"")
            ))
            .await;
        let description = OutboxTable::new(name).with_schema(schema);
        let table = stage.database.make(&description).await;
        let written = stage.database.append(&table, &vec![message("acme", "{}"); 3]).await;
        let recorder = Recorder::new();
        let store = stage.database.store(&description);
        let config = quick().max_lag(Duration::from_hours(1));
        let replica = Replica::start(&store, recorder.clone(), config);
        replica.journal.wait_for(1, |entry| *entry == Entry::Settled(3)).await;
        let written: Vec<_> = written.into_iter().map(MessageId::new).collect();
        assert_eq!(recorder.accepted(&tenant("acme")), written, "{schema}.{name}");
        assert!(store.check().await.unwrap().is_empty(), "{:?}", store.check().await);
        assert_eq!(stage.pending().await, 2, "the namesake in public is another outbox");
        replica.health(outbox_core::HealthReport::is_healthy).await;
        replica.stop().await;
        stage.end().await;
    }
}
