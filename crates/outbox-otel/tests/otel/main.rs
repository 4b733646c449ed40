//! What the observers tell, read from the SDK's in-memory exporters and a recording subscriber.

#![allow(
    clippy::similar_names,
    clippy::type_complexity,
    clippy::redundant_closure_for_method_calls,
    reason = "tests read better with short names and closures"
)]

#[cfg(all(feature = "metrics", feature = "trace", feature = "tracing"))]
mod combined;
#[cfg(feature = "metrics")]
mod gauges;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(feature = "metrics", feature = "trace"))]
mod names;
#[cfg(feature = "metrics")]
mod observe;
#[cfg(all(feature = "metrics", feature = "trace", feature = "tracing"))]
mod outside;
#[cfg(feature = "trace")]
mod propagation;
// The example itself is tested, as the documentation shows it.
#[cfg(feature = "metrics")]
#[allow(dead_code, missing_docs, unreachable_pub)]
#[path = "../../examples/observe.rs"]
mod service;
#[cfg(all(feature = "metrics", feature = "trace"))]
mod stores;
#[cfg(feature = "metrics")]
mod sums;
#[cfg(any(feature = "metrics", feature = "trace", feature = "tracing"))]
mod support;
#[cfg(feature = "trace")]
mod trace;
#[cfg(feature = "tracing")]
mod tracing;
