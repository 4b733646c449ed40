//! Times as PostgreSQL sends them: microseconds since 2000, for `timestamptz` and, in UTC, for `timestamp`.

use crate::row::{Cell, Unreadable};

/// From 1970 to 2000.
const EPOCH: i64 = 946_684_800_000_000;

/// The types that are sent so, by their object ids: `timestamptz` and `timestamp`.
pub const TIME_OIDS: [u32; 2] = [1184, 1114];

/// Microseconds since 1970, of a time as it was sent.
///
/// # Errors
/// [`Unreadable`], if there is none, or it is `infinity`, `-infinity` or past what 64 bits hold.
pub fn micros_since_1970(sent: Option<i64>) -> Cell<i64> {
    sent.filter(|sent| *sent != i64::MIN && *sent != i64::MAX)
        .and_then(|sent| sent.checked_add(EPOCH))
        .ok_or(Unreadable::new("is infinite, null or past what 64 bits of microseconds hold"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is no time of ours is told, and never taken for one.
    #[test]
    fn a_time_is_moved_to_1970_or_told_to_be_none() {
        assert_eq!(micros_since_1970(Some(0)), Ok(EPOCH));
        assert_eq!(micros_since_1970(Some(-EPOCH)), Ok(0));
        assert_eq!(micros_since_1970(Some(i64::MIN + 1)), Ok(i64::MIN + 1 + EPOCH));
        for none in [None, Some(i64::MAX), Some(i64::MIN), Some(i64::MAX - 1), Some(i64::MAX - EPOCH + 1)] {
            assert!(micros_since_1970(none).is_err(), "{none:?}");
        }
    }
}
