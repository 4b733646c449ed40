//! Texts from outside (names, reasons, panics, a database's words) are values: they stay on the line that tells of
//! them, in the log, in health's texts and in errors, and are cut where they are long.

use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::{
    Accepted, ConfigProblem, Delivery, DrainOutcome, HealthProblem, NewMessage, Notice, Observation,
    Observer, Operation, ProbeRequest, Probed, PublishError, Publisher, Publishing, RelayConfig, RelayError,
    Store, StoreError, StoreOperation, TenantHealth, TenantId, TenantState, async_trait,
};
use outbox_memory::MemoryStore;
use proptest::prelude::*;

use crate::stage::{POLL, Stage, calm, config, tenant};
use crate::written::{Written, assert_one_line};

/// Whatever follows the line break would be a line of its own.
const HOSTILE: &str = "acme\nFORGED\r\n\u{1b}[2K\u{85}\u{2028}\u{2029}\u{202e}\u{2066}";

/// Longer than anything that a person reads.
fn endless() -> String {
    format!("{HOSTILE}{}", "a remote body\n".repeat(100_000))
}

/// Refuses once with a hostile cause, panics once, and then accepts.
struct Hostile(std::sync::atomic::AtomicU32);

#[async_trait]
impl Publisher for Hostile {
    async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Err(PublishError::refused(endless()).with_source(endless())),
            1 => std::panic::panic_any(endless()),
            _ => Ok(Accepted),
        }
    }
}

/// An observer that panics with such a text.
struct Panicking;

impl Observer for Panicking {
    fn start(&self, _: &Operation<'_>) -> Option<Box<dyn Observation>> {
        std::panic::panic_any(endless());
    }

    fn notice(&self, _: &Notice<'_>) {}
}

/// A store whose probes fail with such a text.
struct Failing(MemoryStore);

#[async_trait]
impl Store for Failing {
    fn source(&self) -> &str {
        HOSTILE
    }

    fn max_claims(&self) -> Option<NonZeroU32> {
        None
    }

    async fn probe(&self, _: &ProbeRequest) -> Result<Probed, StoreError> {
        Err(StoreError::transient(StoreOperation::Probe, endless()).with_source(endless()))
    }

    async fn claim(
        &self,
        request: &outbox_core::ClaimRequest,
    ) -> Result<outbox_core::ClaimOutcome, StoreError> {
        self.0.claim(request).await
    }
}

fn hostile(by_subject: bool) -> Publishing {
    let publisher = Hostile(0.into());
    if by_subject { Publishing::by_subject(publisher, 2) } else { Publishing::in_order(publisher) }
}

/// A tenant, a subject, a reason, its cause, a panic of the publisher and one of an observer: no line but the
/// relay's own, with and without subjects of their own.
#[tokio::test]
async fn an_outside_text_makes_no_line_of_its_own_in_the_log() {
    for by_subject in [false, true] {
        let stage = Stage::new();
        let (written, _guard) = Written::collect();
        stage.table.append(NewMessage::new(tenant(HOSTILE), HOSTILE, HOSTILE, "{}"));
        let builder = stage.builder(config(), hostile(by_subject));
        let relay = builder.observer(Panicking).build().unwrap();
        let running = relay.start().unwrap();
        stage.until(|| stage.all_marked()).await;
        // The probe after it finds nothing, which is how the tenant is well again.
        stage.pass(POLL * 2).await;
        running.stop().await.unwrap();
        let told = if by_subject {
            ["subject is held back", "subject waits on", "subject recovered"]
        } else {
            ["tenant backs off", "backs off further", "tenant recovered"]
        };
        for what in told {
            written.assert_tells(what);
        }
        written.assert_tells("observer panicked");
    }
}

/// A database's words, and a source that was named by hand.
#[tokio::test]
async fn a_databases_words_make_no_line_of_their_own_in_the_log() {
    let stage = Stage::new();
    let (written, _guard) = Written::collect();
    let config = config().build().unwrap();
    let builder = outbox_core::Relay::builder(Failing(stage.table.clone()), Hostile(0.into()), config);
    let relay = builder.clock(Arc::new(stage.clock.clone())).build().unwrap();
    let running = relay.start().unwrap();
    stage.pass(POLL).await;
    running.stop().await.unwrap();
    written.assert_tells("probes fail");
    written.assert_tells("relay started");
    written.assert_tells("relay stopped");
}

/// Health's line, and that of each tenant, while a subject or the whole tenant backs off and is behind.
#[tokio::test]
async fn an_outside_text_makes_no_line_of_its_own_in_healths_texts() {
    for by_subject in [false, true] {
        let stage = Stage::new();
        stage.table.append(NewMessage::new(tenant(HOSTILE), HOSTILE, HOSTILE, "{}"));
        let relay = stage.builder(config(), hostile(by_subject)).build().unwrap();
        let _running = relay.start().unwrap();
        calm().await;
        let report = relay.health().check().await;
        let (of, health) = report.tenants.iter().next().unwrap();
        assert_eq!(of.as_str(), HOSTILE, "a typed value is whole");
        assert!(health.to_string().contains("refused: acme"), "{health}");
        assert_one_line(&health.to_string());
        stage.clock.advance(std::time::Duration::from_secs(120));
        let report = relay.health().check().await;
        assert!(report.to_string().contains("ms behind"), "{report}");
        assert_one_line(&report.to_string());
    }
    let stage = Stage::new();
    let config = RelayConfig::builder().discover_tenants().build().unwrap();
    let health = outbox_core::HealthCheck::new(Failing(stage.table.clone()), &config);
    assert_one_line(&health.check().await.to_string());
}

/// However many tenants are late, health has one line that can be read; the report has each.
#[tokio::test]
async fn healths_line_has_an_end_whatever_the_number_of_tenants() {
    let stage = Stage::new();
    for index in 0..5_000 {
        stage.write(&format!("tenant-{index:04}"), 1);
    }
    stage.clock.advance(std::time::Duration::from_secs(120));
    let config = RelayConfig::builder().discover_tenants().build().unwrap();
    let report = outbox_core::HealthCheck::new(stage.table.clone(), &config).check().await;
    assert_eq!(report.problems.len(), 5_000);
    let line = report.to_string();
    assert!(line.starts_with("tenant-0000 is 120000 ms behind, tenant-0001"), "{line}");
    assert!(line.ends_with(" more"), "{line}");
    assert_one_line(&line);
}

/// What is kept of a refusal, for as long as the tenant or the subject waits.
#[tokio::test]
async fn what_is_kept_of_a_refusal_is_cut() {
    for by_subject in [false, true] {
        let stage = Stage::new();
        stage.table.append(NewMessage::new(tenant("acme"), "kind", "subject", "{}"));
        let relay = stage.builder(config(), hostile(by_subject)).build().unwrap();
        let _running = relay.start().unwrap();
        calm().await;
        let report = relay.health().check().await;
        let health = report.tenants.get("acme").unwrap();
        let reason = match &health.state {
            TenantState::BackingOff { reason, .. } => reason,
            _ => &health.held_subjects[0].reason,
        };
        assert!(reason.starts_with("refused: acme") && reason.len() < 4_096, "{} bytes", reason.len());
        let report = stage.builder(config(), Hostile(0.into())).build().unwrap().drain().await.unwrap();
        if let Some(DrainOutcome::Refused { reason, .. }) = report.tenants.get("acme") {
            assert!(reason.len() < 4_096, "{} bytes", reason.len());
        }
    }
}

/// A subject whose name is endless is not kept while it waits: its tenant waits instead.
#[tokio::test]
async fn a_subject_with_an_endless_name_is_not_kept_by_the_relay() {
    let stage = Stage::by_subject();
    let long = "s".repeat(100_000);
    stage.write_about("acme", [long.as_str(), "short"]);
    let relay = stage.builder(config(), Publishing::by_subject(Hostile(0.into()), 1));
    let relay = relay.observer(stage.seen.clone()).build().unwrap();
    let _running = relay.start().unwrap();
    calm().await;
    let report = relay.health().check().await;
    let health = report.tenants.get("acme").unwrap();
    assert!(matches!(health.state, TenantState::BackingOff { .. }), "{health:?}");
    assert_eq!(health.held_subjects, []);
    stage.until(|| stage.all_marked()).await;
}

/// Every error of this crate that carries a text from outside.
fn errors(text: &str) -> Vec<String> {
    let named = |name: &str| TenantId::new(name.replace('\0', "0") + ".").unwrap();
    let store = || StoreError::permanent(StoreOperation::Claim, text.to_owned());
    let config = RelayConfig::builder().tenants([named(text).as_str(), named(text).as_str()]).build();
    let number = RelayConfig::builder().discover_tenants();
    let number = number.build_from_lookup(|_| Some(format!("{text}.")));
    vec![
        store().to_string(),
        PublishError::rejected(text).to_string(),
        RelayError::Died { reason: text.to_owned() }.to_string(),
        config.unwrap_err().to_string(),
        number.unwrap_err().to_string(),
        ConfigProblem::DuplicateTenant { tenant: named(text) }.to_string(),
        HealthProblem::Behind { tenant: named(text), lag: POLL }.to_string(),
        HealthProblem::Unreadable { tenant: named(text), message: outbox_core::MessageId::new(1) }
            .to_string(),
        HealthProblem::Failed { reason: text.to_owned() }.to_string(),
        TenantHealth::default().to_string(),
    ]
}

/// Every error is one line, whatever it tells of.
#[test]
fn every_error_is_one_line_whatever_it_tells_of() {
    for text in [HOSTILE, &endless()] {
        for error in errors(text) {
            assert_one_line(&error);
        }
    }
}

proptest! {
    /// By chance, too.
    #[test]
    fn any_text_stays_on_its_line(text in proptest::collection::vec(any::<char>(), 0..64)) {
        for error in errors(&text.into_iter().collect::<String>()) {
            assert_one_line(&error);
        }
    }
}
