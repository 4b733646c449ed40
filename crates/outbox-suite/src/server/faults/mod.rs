//! Real faults: the whole relay, on the store, while something breaks under it.
//!
//! A test that disturbs a server has one of its own; the others have a database of their own on the server that all tests
//! share.

pub(crate) mod cancellation;
pub(crate) mod network;
pub(crate) mod order;
pub(crate) mod orderings;
pub(crate) mod pools;
pub(crate) mod processes;
pub(crate) mod sessions;
