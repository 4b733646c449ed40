//! How long who failed waits.

use std::time::Duration;

use crate::RelayConfig;

/// How failures are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A relay goes on: it tries again after a while.
    Steady,
    /// A drain ends: it tries nothing twice.
    Once,
}

impl Pace {
    /// The wait after so many failures in a row; `jitter` is from 0 to 1.
    pub(super) fn back_off(self, config: &RelayConfig, failures: u32, jitter: f64) -> Duration {
        match self {
            Self::Steady => back_off(config, failures, jitter),
            Self::Once => Duration::MAX,
        }
    }
}

/// What becomes of a tenant, or of a subject, after a turn, as far as others want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    BackedOff { failures: u32, wait: Duration },
    Recovered,
}

/// The n-th failure in a row waits poll x 2^n, at most the ceiling; `jitter` (0 to 1) takes up to a quarter
/// off and never adds.
pub(super) fn back_off(config: &RelayConfig, failures: u32, jitter: f64) -> Duration {
    let factor = 1_u32.checked_shl(failures.min(31)).unwrap_or(u32::MAX);
    let wait = config.poll_interval.saturating_mul(factor).min(config.longest_back_off());
    wait.mul_f64(1.0 - jitter / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_millis(200);

    fn config() -> RelayConfig {
        RelayConfig::builder().discover_tenants().build().unwrap()
    }

    #[test]
    fn the_nth_failure_waits_poll_times_two_to_the_n_less_a_quarter_at_most_and_never_above_the_ceiling() {
        let ceiling = config().max_back_off;
        for failures in 1..=2_000 {
            let full = POLL.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX)).min(ceiling);
            assert_eq!(back_off(&config(), failures, 0.0), full);
            assert_eq!(back_off(&config(), failures, 1.0), full.mul_f64(0.75));
        }
        assert_eq!(back_off(&config(), 1, 0.0), POLL * 2);
        assert_eq!(back_off(&config(), u32::MAX, 0.0), ceiling);
    }

    #[test]
    fn a_poll_longer_than_the_ceiling_is_the_ceiling() {
        let poll = Duration::from_secs(60);
        let mut config = RelayConfig::builder().tenants(["a"]).poll_interval(poll).build().unwrap();
        assert_eq!(back_off(&config, 5, 0.0), poll);
        config.max_back_off = Duration::from_secs(1);
        assert_eq!(back_off(&config, 5, 0.0), poll, "however the option was set");
    }
}
