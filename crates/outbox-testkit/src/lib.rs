//! Conformance suite for outbox stores and publishers, with fault injection, an order recorder and a manual
//! clock.
//!
//! - Who writes a *store* implements [`Harness`] and writes [`conformance!`]`(Mine);`: one test for each law
//!   of [the contract](outbox_core::Store), and random stories replayed against a [`model`].
//! - Who writes a *publisher* implements [`PublisherHarness`] and writes [`publisher_conformance!`]`(Mine);`;
//!   for one that takes slices or keeps order on the way, [`batch_publisher_conformance!`] or
//!   [`ordered_publisher_conformance!`] beside it.
//! - Who tests an *application* takes the [`Recorder`], the faults of [`FaultyPublisher`] and
//!   [`FaultyStore`], and the [`ManualClock`].

// A law is a test: it fails by panicking.
#![allow(clippy::missing_panics_doc)]

mod capability;
mod clock;
pub mod conformance;
mod cut;
mod erased;
mod faulty_publisher;
mod faulty_store;
mod harness;
pub mod laws;
pub mod model;
mod publisher_harness;
pub mod publisher_laws;
mod recorder;
pub mod replay;
mod trial;

pub use crate::capability::{Capability, Unsupported};
pub use crate::clock::ManualClock;
pub use crate::faulty_publisher::{FaultyPublisher, PublishFault, When};
pub use crate::faulty_store::{FaultyStore, StoreFault};
pub use crate::harness::{Harness, Leftovers, OpenWrite, Write};
pub use crate::publisher_harness::{PublisherCapability, PublisherHarness, Received};
pub use crate::recorder::{Delivered, Recorder, Violation};
pub use crate::trial::Trial;

/// What `docs/testing.md` shows, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing.md")]
mod samples {}
