//! The outbox relay without a database or a broker: what a row is, how it is read, published and marked.
//!
//! An application inserts a message into an outbox table, and one transaction commits it together with the change that
//! it tells of. A [`Relay`] reads committed messages through a [`Store`], hands them to a [`Publisher`] in order, and
//! marks those that were accepted.
//!
//! Read on in the order of a row's way: [`NewMessage`] and [`OutboxMessage`], [`Store`] and [`Claim`],
//! [`Publisher`], [`Relay`], and beside it [`Observer`] and [`HealthCheck`].

mod clock;
mod config;
mod error;
mod health;
mod inspect;
mod message;
mod observer;
mod publisher;
mod publishing;
mod relay;
mod settling;
mod status;
mod store;
pub mod text;
mod timestamp;

#[doc = include_str!("../contract.md")]
pub mod contract {}

pub use async_trait::async_trait;
pub use bytes::Bytes;

pub use crate::clock::{BoxFuture, Clock, SystemClock};
pub use crate::config::{
    ConfigError, ConfigProblem, MAX_LAG_VARIABLE, POLL_VARIABLE, RelayConfig, RelayConfigBuilder,
    TENANTS_VARIABLE,
};
pub use crate::error::{StoreError, StoreErrorKind, StoreOperation};
pub use crate::health::{
    HealthCheck, HealthProblem, HealthReport, TenantCondition, TenantHealth, TenantReports,
};
pub use crate::inspect::{Inspect, PendingRequest};
pub use crate::message::{Headers, InvalidTenantId, MessageId, NewMessage, OutboxMessage, Payload, TenantId};
pub use crate::observer::{
    Notice, Observation, Observer, Operation, OperationKind, Outcome, RefusalCause, Share,
};
pub use crate::publisher::{
    Accepted, BatchOutcome, BatchPublisher, Delivery, OrderedPublisher, PublishError, Publisher, RefusalClass,
};
pub use crate::publishing::{Publishing, Slices};
pub use crate::relay::{DrainOutcome, DrainReport, Relay, RelayBuilder, RelayError, RelayHandle, RelayWaker};
pub use crate::settling::Settling;
pub use crate::status::{HeldSubject, RelayState, TenantState};
pub use crate::store::{
    Claim, ClaimOutcome, ClaimRequest, Claimed, OldestPending, PendingSince, ProbeRequest, Probed,
    Settlement, Store, Tenants,
};
pub use crate::timestamp::Timestamp;
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
pub use crate::timestamp::TimestampOutOfRange;
