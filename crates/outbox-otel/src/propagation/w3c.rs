//! The W3C's trace context: two headers, written and read.

use std::str::FromStr;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The header with the trace, the span and whether it is sampled.
pub const TRACEPARENT: &str = "traceparent";
/// The header with what vendors add to it.
pub const TRACESTATE: &str = "tracestate";

/// A `tracestate` over this many bytes is not read: the W3C asks for 512 at least.
const MAX_TRACESTATE: usize = 8 * 1024;
/// What version 00 has: 2 + 32 + 16 + 2 digits and 3 dashes.
const LENGTH: usize = 55;

/// A span context as `traceparent` says it.
pub(super) fn traceparent(context: &SpanContext) -> String {
    let sampled = context.trace_flags() & TraceFlags::SAMPLED;
    format!("00-{}-{}-{sampled:02x}", context.trace_id(), context.span_id())
}

/// The span context of the two headers' values.
pub(super) fn parse(parent: &str, state: Option<&str>) -> Option<SpanContext> {
    let parent = parent.trim();
    let mut parts = parent.splitn(5, '-');
    let version = hex(parts.next()?, 2)?;
    let (trace, span, flags) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?, hex(parts.next()?, 2)?);
    // A later version may add fields behind these; this one has none, and ff is none at all.
    if version == "ff" || (version == "00" && parent.len() != LENGTH) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    // A pair without a key is none, which the API's own parser lets through.
    let keyed = |state: &str| state.split(',').all(|pair| !pair.trim_start().starts_with('='));
    let state = state.filter(|state| state.len() <= MAX_TRACESTATE && keyed(state));
    let state = state.and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    Some(SpanContext::new(trace, span, flags, true, state)).filter(SpanContext::is_valid)
}

/// A part, if it is so many lower-case hexadecimal digits.
fn hex(part: &str, digits: usize) -> Option<&str> {
    let is_hex = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (part.len() == digits && is_hex).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// What is written is what is read, with its state and its flag.
    #[test]
    fn a_context_survives_the_headers() {
        let context = parse(PARENT, Some("a=1,b=2")).unwrap();
        assert!(context.is_remote() && context.is_sampled());
        assert_eq!(traceparent(&context), PARENT);
        assert_eq!(context.trace_state().header(), "a=1,b=2");
        assert!(!parse(&PARENT.replace("-01", "-00"), None).unwrap().is_sampled());
    }

    /// A later version is read by what this one knows; unknown flags are left out.
    #[test]
    fn a_later_version_is_read_by_its_known_parts() {
        let later = PARENT.replacen("00-", "cc-", 1);
        assert_eq!(traceparent(&parse(&format!("{later}-what-ever"), None).unwrap()), PARENT);
        assert_eq!(traceparent(&parse(&PARENT.replace("-01", "-ff"), None).unwrap()), PARENT);
    }

    /// Whatever is garbled is no context, and never a panic.
    #[test]
    fn a_garbled_parent_is_no_context() {
        let zero_trace = PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32));
        let zero_span = PARENT.replace("b7ad6b7169203331", &"0".repeat(16));
        let garbled = [
            "",
            "-",
            "----",
            "00",
            "00-é-é-é",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            &zero_trace,
            &zero_span,
            &PARENT.to_uppercase(),
            &PARENT.replacen("00-", "ff-", 1),
            &format!("{PARENT}-more"),
            &format!("{PARENT}-"),
            &PARENT.replace("0af7", "+af7"),
            &"0".repeat(1_000_000),
        ];
        for parent in garbled {
            assert!(parse(parent, Some("a=1")).is_none(), "{parent:.80}");
        }
    }

    /// A garbled or endless state costs the state, not the trace.
    #[test]
    fn a_garbled_state_is_left_out() {
        for state in ["no pairs at all", "=", &"a=1,".repeat(10_000)] {
            let context = parse(PARENT, Some(state)).unwrap();
            assert_eq!(context.trace_state().header(), "", "{state:.80}");
        }
    }
}
