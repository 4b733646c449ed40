//! Conformance suite for outbox stores and publishers, with fault injection, an order recorder and a manual
//! clock.
//!
//! - Who writes a *store* implements [`Harness`] and writes [`conformance!`]`(Mine);`: one test for each law
//!   of the contract.

// A law is a test: it fails by panicking.
#![allow(clippy::missing_panics_doc)]

mod capability;
pub mod conformance;
mod harness;
pub mod laws;
pub mod model;
pub mod replay;
mod trial;

pub use crate::capability::{Capability, Unsupported};
pub use crate::harness::{Harness, Leftovers, OpenWrite, Write};
pub use crate::trial::Trial;
