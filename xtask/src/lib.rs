//! The workspace's automation as a library: [private servers](servers) for tests, and what the `xtask`
//! program is made of.

pub mod servers;
