use super::*;
use crate::TenantId;

fn lookup(pairs: &'static [(&str, &str)]) -> impl FnMut(&str) -> Option<String> {
    move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn the_environment_is_read_trimmed_and_defaults_fill_the_rest() {
    let config =
        RelayConfig::from_lookup(lookup(&[("OUTBOX_TENANTS", " acme , globex"), ("OUTBOX_POLL_MS", "50")]))
            .unwrap();
    let names = ["acme", "globex"].map(|name| TenantId::new(name).unwrap());
    assert_eq!(config.tenants, Tenants::Named(names.to_vec().into()));
    assert_eq!(config.poll_interval, Duration::from_millis(50));
    assert_eq!(config.max_lag, Duration::from_secs(60));
    assert_eq!((config.initial_batch.get(), config.max_batch.get()), (32, 1_000));
    assert_eq!(config.max_back_off, Duration::from_secs(30));
}

#[test]
fn every_bad_field_is_in_one_error() {
    let error = RelayConfig::builder()
        .max_batch(0)
        .concurrency(0)
        .build_from_lookup(lookup(&[
            ("OUTBOX_TENANTS", "acme,,acme"),
            ("OUTBOX_POLL_MS", "60001"),
            ("OUTBOX_MAX_LAG_MS", "a minute"),
        ]))
        .unwrap_err();
    let text = error.to_string();
    for part in [
        "tenant number 2 of the list: a tenant id must not be empty",
        "tenant \"acme\" is in the list more than once",
        "poll_interval must be 1 to 60000 ms, but is 60.001s",
        "OUTBOX_MAX_LAG_MS must be a whole number of milliseconds, but is \"a minute\"",
        "concurrency must be at least 1",
        "max_batch must be at least 1",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn poll_0_and_60001_are_refused_and_1_and_60000_are_taken() {
    for (millis, good) in [(0, false), (1, true), (60_000, true), (60_001, false)] {
        let built =
            RelayConfig::builder().tenants(["t"]).poll_interval(Duration::from_millis(millis)).build();
        assert_eq!(built.is_ok(), good, "{millis} ms");
    }
}

#[test]
fn no_tenants_is_an_error_that_says_what_to_set() {
    for error in [RelayConfig::from_lookup(|_| None), RelayConfig::builder().tenants([""; 0]).build()] {
        assert_eq!(error.unwrap_err().problems(), [ConfigProblem::NoTenants]);
    }
    let empty = RelayConfig::from_lookup(lookup(&[("OUTBOX_TENANTS", "")])).unwrap_err();
    assert!(empty.to_string().contains("must not be empty"));
}

#[test]
fn a_value_in_code_wins_and_may_hold_what_the_list_cannot() {
    let config = RelayConfig::builder()
        .tenants(["a,b", " c "])
        .build_from_lookup(lookup(&[("OUTBOX_TENANTS", "other,,"), ("OUTBOX_MAX_LAG_MS", "5")]))
        .unwrap();
    let names = ["a,b", " c "].map(|name| TenantId::new(name).unwrap());
    assert_eq!(config.tenants, Tenants::Named(names.to_vec().into()));
    assert_eq!(config.max_lag, Duration::from_millis(5));
}

#[test]
fn a_variable_that_is_not_unicode_is_named_once() {
    let error = RelayConfig::builder()
        .read(|name| if name == TENANTS_VARIABLE { Err(()) } else { Ok(None) })
        .unwrap_err();
    assert_eq!(error.problems(), [ConfigProblem::NotUnicode { variable: TENANTS_VARIABLE }]);
}

#[test]
fn a_poll_longer_than_the_ceiling_raises_the_ceiling() {
    let config =
        RelayConfig::builder().tenants(["t"]).poll_interval(Duration::from_secs(45)).build().unwrap();
    assert_eq!(config.longest_back_off(), Duration::from_secs(45));
}

#[test]
fn a_small_cap_lowers_the_first_batch_and_a_large_first_batch_raises_the_cap() {
    let small = RelayConfig::builder().tenants(["t"]).max_batch(8).build().unwrap();
    assert_eq!((small.initial_batch.get(), small.max_batch.get()), (8, 8));
    let large = RelayConfig::builder().tenants(["t"]).initial_batch(5_000).build().unwrap();
    assert_eq!((large.initial_batch.get(), large.max_batch.get()), (5_000, 5_000));
    assert!(RelayConfig::builder().tenants(["t"]).initial_batch(9).max_batch(8).build().is_err());
}
