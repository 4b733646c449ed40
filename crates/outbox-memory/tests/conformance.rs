//! The reference store keeps every law.

mod support;

use crate::support::Memory;

outbox_testkit::conformance!(Memory);
