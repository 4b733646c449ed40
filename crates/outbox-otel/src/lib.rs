//! Observers for the outbox relay: what it does, seen through `tracing` and OpenTelemetry.
//!
//! | feature | what it brings |
//! | --- | --- |
//! | `tracing` | `TracingObserver`: spans and events for any subscriber |
//! | `metrics` | `MetricsObserver`: OpenTelemetry metrics |
//! | `trace` | `TraceObserver`: OpenTelemetry spans; `propagation`: trace context in a message's headers |
//!
//! None pulls in an OpenTelemetry SDK: the application chooses it, and hands its meter and tracer over. Each
//! works alone, and any of them together on one relay; a publish has one span then, not two.
//!
//! Every name is in [`names`].

#[cfg(any(feature = "tracing", feature = "metrics", feature = "trace"))]
mod broker;
#[cfg(any(feature = "tracing", feature = "metrics", feature = "trace"))]
mod error_type;
#[cfg(feature = "metrics")]
mod metrics;
pub mod names;
#[cfg(feature = "trace")]
pub mod propagation;
#[cfg(any(feature = "tracing", feature = "trace"))]
mod spanned;
#[cfg(feature = "trace")]
mod trace;
#[cfg(feature = "tracing")]
mod tracing;
#[cfg(any(feature = "tracing", feature = "metrics", feature = "trace"))]
mod value;

#[cfg(any(feature = "tracing", feature = "metrics", feature = "trace"))]
pub use crate::broker::Broker;
#[cfg(feature = "metrics")]
pub use crate::metrics::{MetricsObserver, TenantLabel, TenantMap};
#[cfg(feature = "trace")]
pub use crate::trace::{TraceMode, TraceObserver};
#[cfg(feature = "tracing")]
pub use crate::tracing::TracingObserver;

/// What `docs/observe.md` shows, compiled.
#[cfg(all(doctest, feature = "metrics", feature = "trace", feature = "tracing"))]
#[doc = include_str!("../../../docs/observe.md")]
mod samples {}
