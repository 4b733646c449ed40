//! Metrics as a table.

use super::receiver::Point;

/// A line for each series, in the order of names and attributes.
pub(super) fn lines(points: &[Point]) -> Vec<String> {
    let mut points: Vec<&Point> = points.iter().collect();
    points.sort_by(|a, b| (&a.metric, &a.attributes).cmp(&(&b.metric, &b.attributes)));
    points.into_iter().map(line).collect()
}

fn line(point: &Point) -> String {
    #[allow(clippy::cast_precision_loss)]
    let value = match point.count {
        Some(0) => "none".to_owned(),
        Some(count) => format!("{count} x {:.4}", point.value / count as f64),
        None => format!("{:.3}", point.value).trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    // What is the same for all of the demo's series says nothing in its table.
    let said = |name: &str| matches!(name, "outbox.tenant" | "error.type");
    let attributes = point.attributes.iter().filter(|(name, _)| said(name));
    let attributes: Vec<String> = attributes.map(|(_, value)| value.clone()).collect();
    format!("{:<36}{value:>14} {:<11}{}", point.metric, point.unit, attributes.join(", "))
}
