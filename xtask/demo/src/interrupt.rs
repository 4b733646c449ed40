//! Ctrl-C and its like: the story ends there, and everything is put away.

use anyhow::{Result, bail};
use tokio::signal::unix::{SignalKind, signal};

/// What the story answers, unless somebody asks us to end before it does.
///
/// # Errors
/// If the story fails, or we are to end.
pub async fn unless_interrupted<T>(story: impl Future<Output = Result<T>>) -> Result<T> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        outcome = story => return outcome,
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    bail!("interrupted")
}
