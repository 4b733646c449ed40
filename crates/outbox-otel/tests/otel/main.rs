//! What the observers tell, read from the SDK's in-memory exporters and a recording subscriber.

#[cfg(all(feature = "metrics", feature = "trace", feature = "tracing"))]
mod combined;
#[cfg(feature = "metrics")]
mod gauges;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(feature = "metrics", feature = "trace"))]
mod names;
#[cfg(feature = "trace")]
mod propagation;
#[cfg(feature = "metrics")]
mod sums;
#[cfg(any(feature = "metrics", feature = "trace", feature = "tracing"))]
mod support;
#[cfg(feature = "trace")]
mod trace;
#[cfg(feature = "tracing")]
mod tracing;
