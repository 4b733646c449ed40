//! Which server answers, and whether it is one that applications write to. A quiet relay does nothing but probe, so that
//! each probe's own statement asks.

use std::sync::{Mutex, PoisonError};

use outbox_core::{StoreError, StoreOperation};

use crate::row::{Cell, Unreadable};

/// A row of a probe's answer that is no tenant's, which is why it has no id: since when the server runs, to the microsecond,
/// which tells it from every other; and whether it takes writes (2: none, since it is a standby; 1: only of who asks for it;
/// 0: all).
pub(super) const SERVER: &str =
    "SELECT pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())::pg_catalog.text,
       NULL::pg_catalog.int8,
       CASE WHEN pg_catalog.pg_is_in_recovery() THEN 2
            WHEN pg_catalog.current_setting('default_transaction_read_only')::pg_catalog.bool THEN 1
            ELSE 0 END::pg_catalog.int8,
       0::pg_catalog.int8";

/// A server, as it answered a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// What tells it from others, and from itself before it was restarted.
    pub(super) identity: String,
    writes: Writes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    All,
    WhoAsks,
    None,
}

impl Server {
    /// Reads it.
    pub(super) fn of(identity: String, writes: Option<i64>) -> Cell<Self> {
        let writes = match writes {
            Some(0) => Writes::All,
            Some(1) => Writes::WhoAsks,
            Some(2) => Writes::None,
            _ => return Err(Unreadable::new("says of no server whether it takes writes")),
        };
        Ok(Self { identity, writes })
    }

    /// Whether anything can be claimed and marked on it.
    pub(super) fn takes_writes(&self) -> bool {
        self.writes != Writes::None
    }

    /// Why nothing can be.
    pub(super) fn refused(operation: StoreOperation) -> StoreError {
        StoreError::transient(
            operation,
            "the server is a standby (it is in recovery), where nothing can be marked: nothing is published until the \
             address leads to a server that takes writes; every probe closes its connection, so that the pool makes new \
             ones",
        )
    }

    /// Why it may not be the one that applications write to.
    pub(super) fn unfit(&self) -> Option<String> {
        (self.writes == Writes::WhoAsks).then(|| {
            "sessions are read-only by default (default_transaction_read_only), as on a server that was taken out of \
             service: claims go on, and applications may write elsewhere"
                .to_owned()
        })
    }
}

/// The server that answered last.
#[derive(Debug, Default)]
pub(super) struct KnownServer(Mutex<Option<String>>);

impl KnownServer {
    /// Takes in who answered, and says whether another did before.
    pub(super) fn is_another(&self, server: &Server) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.replace(server.identity.clone());
        before.is_some_and(|before| before != server.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(identity: &str, writes: i64) -> Server {
        Server::of(identity.to_owned(), Some(writes)).unwrap()
    }

    /// The first server is no other, and a change is told once.
    #[test]
    fn another_server_is_known_by_its_identity() {
        let known = KnownServer::default();
        let told = ["one", "one", "two", "two", "one"].map(|identity| known.is_another(&server(identity, 0)));
        assert_eq!(told, [false, false, true, false, true]);
    }

    #[test]
    fn what_takes_no_writes_is_refused_and_what_is_read_only_by_default_is_unfit() {
        let found =
            [0, 1, 2].map(|writes| server("one", writes)).map(|it| (it.takes_writes(), it.unfit().is_some()));
        assert_eq!(found, [(true, false), (true, true), (false, false)]);
        assert!(Server::of("one".to_owned(), Some(3)).is_err());
        assert!(Server::of("one".to_owned(), None).is_err());
    }
}
