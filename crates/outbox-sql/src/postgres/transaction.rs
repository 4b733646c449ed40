//! What is the same for every table: how a transaction begins, what is set in it, and how it ends.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::driver::Answer;
use crate::row::Cell;

/// Begins the transaction of a claim. READ COMMITTED, so that the read after the lock sees what the last holder
/// marked, whatever the server's default; READ WRITE, so that a standby refuses it before anything is published.
pub const BEGIN_CLAIM: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Begins a transaction for one read: behind a transaction pooler it keeps its statements on one server.
pub const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";

/// Asks the server what it is: its version's number and whether it runs on Linux.
pub const SERVER_TRAITS: &str = "SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4, \
     pg_catalog.strpos(pg_catalog.version(), 'linux') OPERATOR(pg_catalog.>) 0";

/// What a server can do that others cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTraits {
    /// `server_version_num`: 150018 is 15.18.
    pub version: i64,
    /// Whether it runs on Linux, where it can notice a closed socket while a statement runs.
    pub linux: bool,
}

impl ServerTraits {
    /// Reads them.
    ///
    /// # Errors
    /// [`Unreadable`](crate::row::Unreadable), if a value is none of these.
    pub fn of(mut answer: Answer) -> Cell<Self> {
        Ok(Self { version: answer.take(0)?, linux: answer.take(1)? })
    }
}

/// What is known of the server, once it was asked.
#[derive(Debug, Default)]
pub(super) struct KnownTraits(Mutex<Option<ServerTraits>>);

impl KnownTraits {
    /// What is known.
    pub(super) fn get(&self) -> Option<ServerTraits> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server was asked.
    pub(super) fn remember(&self, traits: ServerTraits) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(traits);
    }

    /// It may be another server by now.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Whether the commit of a mark waits for the disk, and for synchronous standbys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// As the server is set, which by default is that it waits. The default.
    #[default]
    Durable,
    /// It does not wait: `synchronous_commit` is off for the claim's transaction. A crash of the server within
    /// about three times its `wal_writer_delay` (200 ms) of a mark can take that mark back, and its messages are
    /// then published again, in order; none is lost.
    Relaxed,
}

/// The settings of a claim, for its transaction only: one text of several statements, without parameters.
///
/// No timeout ends the transaction while a message is being published; a wait for a lock ends with the request's
/// deadline; a client that vanished is noticed within about a minute, or a second while a statement runs.
///
/// Its statements go by an index, in the index's order, whatever the planner thinks of them: its statistics are those
/// of another hour, and what a batch costs must not depend on them.
pub fn claim_settings(traits: ServerTraits, timeout: Duration, durability: Durability) -> String {
    let lock_timeout = timeout.as_millis().clamp(1, 2_147_483_647);
    let mut settings = format!(
        "SET LOCAL idle_in_transaction_session_timeout = 0; \
         SET LOCAL lock_timeout = {lock_timeout}; \
         SET LOCAL tcp_keepalives_idle = 30; \
         SET LOCAL tcp_keepalives_interval = 10; \
         SET LOCAL tcp_keepalives_count = 3; \
         SET LOCAL enable_seqscan = off; \
         SET LOCAL enable_bitmapscan = off; \
         SET LOCAL enable_sort = off; \
         SET LOCAL jit = off"
    );
    if traits.version >= 140_000 && traits.linux {
        settings.push_str("; SET LOCAL client_connection_check_interval = 1000");
    }
    if traits.version >= 170_000 {
        settings.push_str("; SET LOCAL transaction_timeout = 0");
    }
    if durability == Durability::Relaxed {
        settings.push_str("; SET LOCAL synchronous_commit = off");
    }
    settings
}

/// What a claim's transaction is known by, to a driver that reads the answers of all statements of a text. No other
/// transaction has the same, whoever shares the session.
#[derive(Debug, Clone, Copy)]
pub struct ClaimNumber(u64);

impl ClaimNumber {
    /// One of its own.
    pub fn draw() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    /// Gives it to the transaction, which takes it along when it ends. To be sent after the transaction began.
    ///
    /// A `SELECT`, and so one with all others to the server's statistics of statements: they keep each `SET` by itself.
    pub fn announce(self) -> String {
        format!("SELECT pg_catalog.set_config('outbox.claim', '{}', true)", self.0)
    }

    /// Commits, and asks whether that was done, and to this transaction: a `COMMIT` can be answered by a rollback.
    ///
    /// The transaction leaves its number to the session, which a rollback takes back. It asks no table: whoever waited
    /// to alter ours may have locked it once the claim was committed.
    pub fn commit_and_confirm(self) -> String {
        format!(
            "SELECT pg_catalog.set_config('outbox.settlement', \
             coalesce(pg_catalog.current_setting('outbox.claim', true), ''), false); \
             COMMIT; \
             SELECT coalesce(pg_catalog.current_setting('outbox.settlement', true) OPERATOR(pg_catalog.=) '{}', false)",
            self.0
        )
    }
}

/// The number of the transaction that marked. For a driver that sends the next statement before it has an answer.
pub const TRANSACTION: &str = "SELECT pg_catalog.pg_current_xact_id()::pg_catalog.text";

/// Asks what became of a transaction, be it in another session: its number. `committed`, or it is not.
pub const CONFIRM: &str = "SELECT pg_catalog.pg_xact_status($1::pg_catalog.text::pg_catalog.xid8)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_a_server_does_not_know_are_not_sent() {
        let settings = |version, linux| {
            claim_settings(ServerTraits { version, linux }, Duration::from_secs(5), Durability::Durable)
        };
        assert!(settings(150_000, true).contains("client_connection_check_interval"));
        assert!(!settings(130_000, true).contains("client_connection_check_interval"));
        assert!(!settings(150_000, false).contains("client_connection_check_interval"));
        assert!(!settings(160_000, true).contains("transaction_timeout = 0; "));
        assert!(settings(170_000, true).ends_with("SET LOCAL transaction_timeout = 0"));
        assert!(settings(150_000, true).contains("lock_timeout = 5000"));
    }
}
