//! Traces as trees.

use std::fmt::Write as _;

use super::receiver::Span;

/// Every trace, in the order of their begins; each span below its parent.
pub(super) fn lines(spans: &[Span]) -> Vec<String> {
    let mut roots: Vec<&Span> = spans.iter().filter(|span| is_root(spans, span)).collect();
    roots.sort_by_key(|span| span.begin);
    let mut lines = Vec::new();
    for root in roots {
        lines.push(format!("trace {}", hex(&root.trace)));
        branch(spans, root, root.begin, 0, &mut lines);
    }
    lines
}

/// The spans below a span, in the order of their begins.
pub(super) fn children<'a>(spans: &'a [Span], parent: &Span) -> Vec<&'a Span> {
    let is_child = |span: &&Span| span.trace == parent.trace && span.parent == parent.id;
    let mut children: Vec<&Span> = spans.iter().filter(is_child).collect();
    children.sort_by_key(|span| span.begin);
    children
}

fn branch(spans: &[Span], span: &Span, begin: u64, depth: usize, lines: &mut Vec<String>) {
    let at = milliseconds(span.begin.saturating_sub(begin));
    let took = milliseconds(span.end.saturating_sub(span.begin));
    let detail = |name: &str, label: &str| {
        span.attributes.get(name).map(|value| format!("  {label} {value}")).unwrap_or_default()
    };
    let error = span.error.as_ref().map(|error| format!("  ERROR {error}")).unwrap_or_default();
    let name = format!("{}{}", "  ".repeat(depth), span.name);
    lines.push(format!(
        "  {:<8}{name:<28} at {at:>8} for {took:>8}{}{}{}{error}",
        span.service,
        detail("messaging.message.id", "row"),
        detail("outbox.tenant", "of"),
        detail("outbox.attempt", "attempt"),
    ));
    for child in children(spans, span) {
        branch(spans, child, begin, depth + 1, lines);
    }
}

fn is_root(spans: &[Span], span: &Span) -> bool {
    !spans.iter().any(|other| other.trace == span.trace && other.id == span.parent)
}

fn milliseconds(nanos: u64) -> String {
    #[allow(clippy::cast_precision_loss)]
    let milliseconds = nanos as f64 / 1e6;
    format!("{milliseconds:.2} ms")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes everything.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
