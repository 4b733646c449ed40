//! Waking a relay from where it is not at hand.

use std::fmt;

use tokio::sync::watch;

/// Wakes a relay, as [`Relay::wake`](crate::Relay::wake) does, and keeps nothing of it alive. Cloning is cheap.
#[derive(Clone)]
pub struct RelayWaker(pub(super) watch::Sender<()>);

impl RelayWaker {
    /// Looks for messages now instead of at the next poll. It never blocks; calls that come close together count
    /// as one. Nothing happens once the relay has ended.
    pub fn wake(&self) {
        self.0.send_replace(());
    }
}

impl fmt::Debug for RelayWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayWaker").finish_non_exhaustive()
    }
}
