//! The laws of a store, one function each. The list of them is in [`conformance`](crate::conformance).

pub mod claim;
pub mod pending;
