//! A point in time, to the microsecond.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970-01-01 00:00 UTC, before it if negative.
///
/// Our own type, so that no driver's codec, time zone or date style is involved between a row and the
/// publisher. With the features `chrono`, `jiff` and `time` it converts from and into those crates' types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The point so many microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// How long before `later` this point is; zero if it is not before it.
    pub fn until(self, later: Self) -> Duration {
        u64::try_from(i128::from(later.0) - i128::from(self.0)).map_or(Duration::ZERO, Duration::from_micros)
    }

    /// The point `duration` later, at most the last one there is.
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(i64::try_from(duration.as_micros()).map_or(i64::MAX, |micros| self.0.saturating_add(micros)))
    }
}

/// To the microsecond, rounded towards the past; what does not fit becomes the nearest point that does.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(0).saturating_add(after),
            Err(before) => {
                let nanos = before.duration().as_nanos().div_ceil(1_000);
                Self(i64::try_from(nanos).map_or(i64::MIN, |micros| -micros))
            }
        }
    }
}

/// A date-time crate cannot hold this timestamp.
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the timestamp of {micros} microseconds since 1970 is outside of what the date-time type can hold")]
pub struct TimestampOutOfRange {
    micros: i64,
}

#[cfg(feature = "chrono")]
mod chrono {
    use super::{Timestamp, TimestampOutOfRange};
    use ::chrono::{DateTime, TimeZone, Utc};

    impl<Z: TimeZone> From<DateTime<Z>> for Timestamp {
        fn from(time: DateTime<Z>) -> Self {
            Self::from_micros(time.timestamp_micros())
        }
    }

    impl TryFrom<Timestamp> for DateTime<Utc> {
        type Error = TimestampOutOfRange;

        fn try_from(time: Timestamp) -> Result<Self, Self::Error> {
            Self::from_timestamp_micros(time.0).ok_or(TimestampOutOfRange { micros: time.0 })
        }
    }
}

#[cfg(feature = "jiff")]
mod jiff {
    use super::{Timestamp, TimestampOutOfRange};

    impl From<::jiff::Timestamp> for Timestamp {
        fn from(time: ::jiff::Timestamp) -> Self {
            Self::from_micros(time.as_microsecond())
        }
    }

    impl TryFrom<Timestamp> for ::jiff::Timestamp {
        type Error = TimestampOutOfRange;

        fn try_from(time: Timestamp) -> Result<Self, Self::Error> {
            Self::from_microsecond(time.0).map_err(|_| TimestampOutOfRange { micros: time.0 })
        }
    }
}

#[cfg(feature = "time")]
mod time {
    use super::{Timestamp, TimestampOutOfRange};
    use ::time::OffsetDateTime;

    impl From<OffsetDateTime> for Timestamp {
        fn from(time: OffsetDateTime) -> Self {
            let micros = time.unix_timestamp_nanos().div_euclid(1_000);
            // The crate's whole range of years fits: 999,999 years are 3.2e19 ns, 3.2e16 µs.
            Self::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
        }
    }

    impl TryFrom<Timestamp> for OffsetDateTime {
        type Error = TimestampOutOfRange;

        fn try_from(time: Timestamp) -> Result<Self, Self::Error> {
            Self::from_unix_timestamp_nanos(i128::from(time.0) * 1_000)
                .map_err(|_| TimestampOutOfRange { micros: time.0 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_time_keeps_its_microseconds_on_both_sides_of_the_epoch() {
        let after = UNIX_EPOCH + Duration::new(1, 2_999);
        let before = UNIX_EPOCH - Duration::new(1, 2_001);
        assert_eq!(Timestamp::from(after).as_micros(), 1_000_002);
        assert_eq!(Timestamp::from(before).as_micros(), -1_000_003);
    }

    #[test]
    fn an_age_is_never_negative_and_never_overflows() {
        let (first, last) = (Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX));
        assert_eq!(last.until(first), Duration::ZERO);
        assert_eq!(first.until(last), Duration::from_micros(u64::MAX));
        assert_eq!(last.saturating_add(Duration::from_secs(1)), last);
    }
}
