//! The order of things that no database can be made to bring about at will.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::{BoxFuture, Clock, Timestamp};

use super::*;

type Result = std::result::Result<(), outbox_core::InvalidTenantId>;

/// A clock that is moved by hand; nobody sleeps by it.
#[derive(Debug, Default)]
struct Hand(Mutex<Duration>);

impl Hand {
    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn eager() -> (Watermarks, Arc<Hand>) {
    let clock = Arc::new(Hand::default());
    let settings = Watermark::new().with_worth(0, Duration::ZERO).with_clock(Arc::<Hand>::clone(&clock));
    (Watermarks::new(settings), clock)
}

fn make_safe(watermarks: &Watermarks, last: i64) {
    if let Some(asking) = watermarks.asks() {
        watermarks.told(&asking, SafeAnswer { last: Some(last), writers: BTreeSet::new() });
    }
}

fn ids(ids: impl IntoIterator<Item = i64>) -> Vec<MessageId> {
    ids.into_iter().map(MessageId::new).collect()
}

fn request(tenant: &TenantId) -> ClaimRequest {
    ClaimRequest::new(tenant.clone(), NonZeroU32::MIN)
}

/// A claim of ids 1 to 10, settled.
fn settle_ten(watermarks: &Watermarks, tenant: &TenantId) {
    let start = watermarks.start(tenant);
    assert!(!watermarks.read(&request(tenant), &start, Some(1)));
    watermarks.settled(tenant, &start, &ids(1..=10));
}

#[test]
fn a_claim_raises_to_what_was_safe_before_it_read_and_no_further() -> Result {
    let (watermarks, _) = eager();
    let tenant = TenantId::new("acme")?;
    let before = watermarks.start(&tenant);
    make_safe(&watermarks, 7);
    // Its snapshot may be older than the safe id.
    watermarks.settled(&tenant, &before, &ids(1..=10));
    assert_eq!(watermarks.start(&tenant).from, None);
    settle_ten(&watermarks, &tenant);
    assert_eq!(watermarks.start(&tenant).from, Some(7));
    Ok(())
}

#[test]
fn what_began_before_all_was_forgotten_is_not_remembered_after_it() -> Result {
    let (watermarks, _) = eager();
    let tenant = TenantId::new("acme")?;
    make_safe(&watermarks, 100);
    let (start, probe) = (watermarks.start(&tenant), watermarks.start_probe(None));
    let asking = watermarks.asks();
    watermarks.forget();
    watermarks.settled(&tenant, &start, &ids(1..=10));
    watermarks.probed(&probe, &[]);
    assert_eq!(watermarks.start(&tenant).from, None);
    if let Some(asking) = asking {
        watermarks.told(&asking, SafeAnswer { last: Some(200), writers: BTreeSet::new() });
    }
    settle_ten(&watermarks, &tenant);
    assert_eq!(watermarks.start(&tenant).from, None, "the safe id was forgotten, too");
    Ok(())
}

#[test]
fn a_probe_that_began_before_a_raise_does_not_take_what_was_pending_then_for_a_stray() -> Result {
    let (watermarks, clock) = eager();
    let tenant = TenantId::new("acme")?;
    make_safe(&watermarks, 100);
    settle_ten(&watermarks, &tenant);
    let probe = watermarks.start_probe(None);
    assert_eq!((&probe.tenants, &probe.ids), (&vec![tenant.clone()], &vec![10]));
    let start = watermarks.start(&tenant);
    watermarks.settled(&tenant, &start, &ids(11..=20));
    let saw = |id| [OldestPending::unreadable(tenant.clone(), MessageId::new(id))];
    watermarks.probed(&probe, &saw(11));
    assert_eq!(watermarks.start(&tenant).from, Some(20));
    // One that began after it saw a stray.
    let probe = watermarks.start_probe(None);
    watermarks.probed(&probe, &saw(11));
    assert_eq!(watermarks.start(&tenant).from, None);

    // Nor does one that may have seen a stray count as a look that found none.
    let start = watermarks.start(&tenant);
    watermarks.read(&request(&tenant), &start, Some(21));
    clock.advance(Duration::from_secs(5));
    let probe = watermarks.start_probe(None);
    assert!(probe.tenants.is_empty(), "it looks from zero");
    watermarks.settled(&tenant, &start, &ids(21..=30));
    watermarks.probed(&probe, &saw(5));
    assert_eq!(watermarks.start(&tenant).from, None);
    Ok(())
}

#[test]
fn a_probe_of_some_tenants_looked_at_no_others() -> Result {
    let (watermarks, clock) = eager();
    let (tenant, other) = (TenantId::new("acme")?, TenantId::new("globex")?);
    make_safe(&watermarks, 100);
    settle_ten(&watermarks, &tenant);
    settle_ten(&watermarks, &other);
    clock.advance(Duration::from_secs(5));
    let probe = watermarks.start_probe(Some(std::slice::from_ref(&tenant)));
    assert!(!probe.passes_over());
    watermarks.probed(&probe, &[]);
    assert_eq!(watermarks.start(&tenant).from, Some(10));
    assert_eq!(watermarks.start(&other).from, None);
    Ok(())
}

#[test]
fn the_safe_id_is_asked_for_rarely_and_by_one_claim() -> Result {
    let clock = Arc::new(Hand::default());
    let interval = Duration::from_millis(300);
    let settings = Watermark::new().with_worth(15, interval).with_clock(Arc::<Hand>::clone(&clock));
    let watermarks = Watermarks::new(settings);
    let tenant = TenantId::new("acme")?;
    assert!(watermarks.asks().is_some() && watermarks.asks().is_some(), "each, while nobody was told");
    make_safe(&watermarks, 0);
    clock.advance(interval);
    settle_ten(&watermarks, &tenant);
    assert!(watermarks.asks().is_none(), "ten are not worth it");
    settle_ten(&watermarks, &tenant);
    assert!(watermarks.asks().is_some());
    assert!(watermarks.asks().is_none(), "somebody does");
    clock.advance(interval);
    make_safe(&watermarks, 50);
    clock.advance(interval);
    assert!(watermarks.asks().is_none(), "all that was settled is safe");
    Ok(())
}

#[test]
fn probes_are_given_the_watermarks_that_are_worth_it() -> Result {
    let settings = Watermark::new().with_worth(11, Duration::ZERO);
    let watermarks = Watermarks::new(settings);
    let tenant = TenantId::new("acme")?;
    make_safe(&watermarks, 100);
    settle_ten(&watermarks, &tenant);
    assert!(watermarks.start_probe(None).ids.is_empty());
    assert_eq!(
        watermarks.start_probe(Some(std::slice::from_ref(&tenant))).ids,
        [10],
        "one by one they cost nothing"
    );
    let start = watermarks.start(&tenant);
    watermarks.settled(&tenant, &start, &ids([11]));
    assert_eq!(watermarks.start_probe(None).ids, [11]);
    Ok(())
}

#[test]
fn a_safe_id_that_was_not_asked_for_lately_raises_nothing_and_is_asked_for_again() -> Result {
    let (watermarks, clock) = eager();
    let tenant = TenantId::new("acme")?;
    make_safe(&watermarks, 100);
    clock.advance(Duration::from_secs(5));
    settle_ten(&watermarks, &tenant);
    assert_eq!(watermarks.start(&tenant).from, None, "the sequence may have been set back");
    make_safe(&watermarks, 100);
    assert!(watermarks.asks().is_none(), "it was not, and all that was settled is safe");
    settle_ten(&watermarks, &tenant);
    assert_eq!(watermarks.start(&tenant).from, Some(10));
    Ok(())
}

#[test]
fn a_sequence_that_was_set_back_is_another() -> Result {
    for last in [Some(99), None] {
        let (watermarks, clock) = eager();
        let (tenant, other) = (TenantId::new("acme")?, TenantId::new("globex")?);
        make_safe(&watermarks, 100);
        settle_ten(&watermarks, &tenant);
        clock.advance(Duration::from_secs(5));
        settle_ten(&watermarks, &other);
        let began_before = watermarks.start(&other);
        let Some(asking) = watermarks.asks() else { panic!("it is time") };
        watermarks.told(&asking, SafeAnswer { last, writers: BTreeSet::from(["3/1".to_owned()]) });
        watermarks.settled(&other, &began_before, &ids(1..=10));
        settle_ten(&watermarks, &tenant);
        for tenant in [&tenant, &other] {
            assert_eq!(watermarks.start(tenant).from, None, "3/1 may have drawn what comes now");
        }
    }
    Ok(())
}

#[test]
fn a_probe_that_began_before_a_claim_found_nothing_is_not_the_look_that_is_due() -> Result {
    let (watermarks, clock) = eager();
    let tenant = TenantId::new("acme")?;
    make_safe(&watermarks, 100);
    settle_ten(&watermarks, &tenant);
    clock.advance(Duration::from_secs(5));
    let probe = watermarks.start_probe(None);
    watermarks.probed(&watermarks.start_probe(None), &[]);
    clock.advance(Duration::from_millis(1));
    let start = watermarks.start(&tenant);
    assert_eq!(start.from, Some(10));
    watermarks.read(&request(&tenant), &start, None);
    // What it was asked for came after that probe had looked.
    watermarks.probed(&probe, &[]);
    let start = watermarks.start(&tenant);
    assert_eq!(start.from, None);
    watermarks.read(&request(&tenant), &start, None);
    assert_eq!(watermarks.start(&tenant).from, Some(10));
    Ok(())
}
