//! What the `xtask` program is made of.

#[cfg(feature = "bench")]
pub mod bench;
