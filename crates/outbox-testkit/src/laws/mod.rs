//! The laws of a store, one function each. The list of them is in [`conformance`](mod@crate::conformance).

pub mod cancel;
pub mod claim;
pub mod data;
pub mod exclusion;
pub mod model;
pub mod pending;
pub mod probe;
pub mod release;
pub mod settle;
pub mod write;
