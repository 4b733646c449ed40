//! The workspace's automation as a library: [private servers](servers) for tests, and what
//! the `xtask` program is made of.

#[cfg(feature = "bench")]
pub mod bench;
pub mod servers;
