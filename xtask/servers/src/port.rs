//! Free ports.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

/// Below the range that systems take outgoing connections' ports from, so that a server that restarts finds
/// its port still free.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port that nothing listens on now. Each process starts its search somewhere else, and does not hand out a
/// port twice in a row; a server that finds its port taken after all tries another.
pub(super) fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(u64::from(std::process::id()) * 97 % u64::from(COUNT)).unwrap_or_default();
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (start + step) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port from {FIRST} to {}", FIRST + COUNT - 1)
}
