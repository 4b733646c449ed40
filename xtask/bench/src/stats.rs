//! Of several measurements, the one in the middle.

use std::time::Duration;

/// The middle of the values; 0 if there is none.
pub(super) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value that this part of the values does not exceed (0.5 is the median); 0 if there is none.
pub(super) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let place = (last as f64 * part).round() as usize;
    sorted.get(place).copied().unwrap_or_default()
}

/// Milliseconds.
pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Microseconds for each of these.
pub(super) fn micros_each(duration: Duration, count: u64) -> f64 {
    duration.as_secs_f64() * 1e6 / as_f64(count.max(1))
}

/// A count as a floating number; counts are small here.
#[allow(clippy::cast_precision_loss)]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The median and the 99th percentile are values that were measured, in whatever order they came.
    #[test]
    fn quantiles_are_measured_values() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        let hundred: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert!((quantile(&hundred, 0.99) - 99.0).abs() < f64::EPSILON);
        assert!(median(&[]).abs() < f64::EPSILON);
    }
}
